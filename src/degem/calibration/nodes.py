"""Calibration nodes: held-out in-distribution nodes and their scores, in a graph that has grown."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from degem.calibration.known import ENOUGH, KnownNodes, hashed, hashes_of
from degem.errors import CalibrationWarning
from degem.graph import Graph
from degem.model_file import tensor_of

ABSENT = (
    "the graph lacks the calibration nodes, or their edges: p-values compare with their scores in the graph of the "
    "fit, and flag too much where that has grown"
)


@dataclass(frozen=True)
class Calibration:
    """In-distribution nodes that no fit has seen: new in-distribution nodes score as they do, in the same graph.

    Neither were in the training graph, both are in the one that is scored, in one pass: their scores are exchangeable
    (Zargarbashi & Bojchevski, *Conformal inductive graph neural networks*, ICLR 2024).

    Arguments:
        nodes: The nodes.
        scores: Their scores in the graph that they were taken from.
        degrees: Their degrees there.
        present: Hashes of the ids of all nodes that were there at the fit, sorted.
        features: Their features, of shape (n, d₀), if the model is to be whole by itself.
    """

    nodes: KnownNodes
    scores: NDArray[np.float64]
    degrees: NDArray[np.int64]
    present: NDArray[np.int64]
    features: NDArray[np.float32] | None = None

    @classmethod
    def of(
        cls,
        graph: Graph,
        rows: NDArray[np.int64],
        scores: NDArray[np.float64],
        *,
        keep: bool,
        present: NDArray[np.int64] | None = None,
    ) -> Calibration:
        """Calibration on some nodes of a graph that was scored.

        Arguments:
            graph: The graph.
            rows: The nodes.
            scores: The scores of every node of the graph.
            keep: Whether to keep their features.
            present: Hashes of the ids of the nodes that were there at the fit; default: those of this graph.
        """
        return cls(
            KnownNodes.of(graph, rows),
            np.asarray(scores, dtype=np.float64)[rows],
            graph.degrees[rows],
            np.sort(hashes_of(graph)) if present is None else present,
            _dense(graph.features[rows]) if keep else None,
        )

    def __len__(self) -> int:
        """The number of calibration nodes."""
        return len(self.scores)

    def new_in(self, graph: Graph) -> NDArray[np.bool_]:
        """Which nodes of a graph were not there at the fit."""
        return ~np.isin(hashes_of(graph), self.present)

    def holds(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Which ids are calibration nodes'."""
        return np.isin(hashed(ids), self.nodes.ids)

    def joined(self, graph: Graph) -> tuple[Graph, NDArray[np.int64] | None]:
        """The graph to score for p-values, and the calibration nodes in it; None where it lacks them.

        It is the graph itself, or the graph and the kept nodes behind its own.
        """
        rows = self.nodes.rows_in(graph)
        if rows is not None:
            return graph, rows
        if self.features is not None:
            whole = self._with_kept(graph, self.features)
            if whole is not None:
                return whole, np.arange(graph.num_nodes, whole.num_nodes)
        if len(self):
            warnings.warn(CalibrationWarning(ABSENT), stacklevel=4)
        return graph, None

    def _with_kept(self, graph: Graph, kept: NDArray[np.float32]) -> Graph | None:
        """The graph and the kept nodes, joined by those of their edges whose other end it has; None if few."""
        others = self.nodes.neighbours_in(graph)
        there = others >= 0
        places = graph.node_ids.dtype.kind in "iu" and bool((graph.node_ids == np.arange(graph.num_nodes)).all())
        if places or len(there) == 0 or there.mean() < ENOUGH:
            return None
        ends = self.nodes.ends[there], others[there]
        links = sp.csr_array((np.ones(there.sum(), dtype=np.float32), ends), shape=(len(kept), graph.num_nodes))
        adjacency = sp.csr_array(sp.block_array([[graph.adjacency, links.T], [links, None]], format="csr"))
        adjacency.sort_indices()
        features = graph.features
        return Graph(
            features=sp.csr_array(sp.vstack([features, sp.csr_array(kept)]))
            if isinstance(features, sp.csr_array)
            else np.vstack([features, kept]),
            adjacency=adjacency,
            labels=np.full(adjacency.shape[0], -1),
            node_ids=np.concatenate([graph.node_ids.astype(str), [f"calibration {row}" for row in range(len(kept))]]),
            feature_names=graph.feature_names,
        )

    # -- in a model file ---------------------------------------------------------------------------------------

    def state(self) -> dict[str, torch.Tensor]:
        """The numbers, as named tensors."""
        arrays: dict[str, NDArray[Any]] = {"scores": self.scores, "degrees": self.degrees, "present": self.present}
        if self.features is not None:
            arrays["features"] = self.features
        return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()} | self.nodes.state()

    @classmethod
    def restored(cls, state: dict[str, torch.Tensor], prefix: str, num_features: int) -> Calibration:
        """The inverse of :meth:`state`, from tensors whose names begin with a prefix."""
        nodes = KnownNodes.restored(state, prefix)
        count = len(nodes.ids)
        scores = tensor_of(state, f"{prefix}scores", torch.float64, count).numpy()
        degrees = tensor_of(state, f"{prefix}degrees", torch.int64, count).numpy()
        present = tensor_of(state, f"{prefix}present", torch.int64, None).numpy()
        features = None
        if f"{prefix}features" in state:
            features = tensor_of(state, f"{prefix}features", torch.float32, count, num_features).numpy()
        return cls(nodes, scores, degrees, present, features)


def _dense(features: NDArray[np.float32] | sp.csr_array) -> NDArray[np.float32]:
    return np.asarray(features.toarray() if isinstance(features, sp.csr_array) else features)
