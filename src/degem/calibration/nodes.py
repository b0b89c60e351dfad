"""Calibration nodes: held-out in-distribution nodes and their scores, in a graph that has grown."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from degem.calibration.known import ENOUGH, KnownNodes, ids_are_places, rows_by_hash, rows_of
from degem.calibration.trust import fit_errors
from degem.errors import CalibrationWarning
from degem.graph import Graph
from degem.model_file import tensor_of, tensors_of
from degem.ops.features import dense, stacked

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
        labels: Their classes, −1 where unknown.
        features: Their features, of shape (n, d₀), if the model is to be whole by itself.
        error_weights: How doubts tell errors there: see :func:`~degem.calibration.trust.fit_errors`.
    """

    nodes: KnownNodes
    scores: NDArray[np.float64]
    degrees: NDArray[np.int64]
    labels: NDArray[np.int64]
    features: NDArray[np.float32] | None = None
    error_weights: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        graph: Graph,
        rows: NDArray[np.int64],
        scores: NDArray[np.float64],
        labels: NDArray[np.int64],
        *,
        keep: bool,
    ) -> Calibration:
        """Calibration on some nodes of a graph that was scored.

        Arguments:
            graph: The graph.
            rows: The nodes.
            scores: The scores of every node of the graph.
            labels: The classes of every node, −1 where unknown.
            keep: Whether to keep their features.
        """
        return cls(
            KnownNodes.of(graph, rows),
            np.asarray(scores, dtype=np.float64)[rows],
            graph.degrees[rows],
            labels[rows],
            dense(graph.features[rows]) if keep else None,
        )

    def __len__(self) -> int:
        """The number of calibration nodes."""
        return len(self.scores)

    def learn_errors(
        self, places: NDArray[np.int64], predicted: NDArray[np.int64], against: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """What tells wrong predictions, learnt on nodes with a label; None without such.

        Arguments:
            places: The row of each calibration node in a graph, −1 where it lacks one.
            predicted: The predicted class of every node of the graph.
            against: What speaks against it, see :func:`~degem.calibration.trust.doubts`.
        """
        told = (places >= 0) & (self.labels >= 0)
        rows = places[told]
        return fit_errors(against[rows], predicted[rows] != self.labels[told]) if told.any() else None

    def joined(self, graph: Graph) -> tuple[Graph, NDArray[np.int64] | None]:
        """The graph to score for p-values, and the row of each calibration node in it, −1 or None where it lacks them.

        It is the graph itself, or the graph and the kept nodes behind its own.
        """
        rows = self.nodes.places_in(graph)
        if rows is not None:
            return graph, rows
        if self.features is not None and not ids_are_places(graph):
            whole = self._with_kept(graph, self.features)
            if whole is not None:
                return whole
        if len(self):
            warnings.warn(CalibrationWarning(ABSENT), stacklevel=4)
        return graph, None

    def _with_kept(self, graph: Graph, kept: NDArray[np.float32]) -> tuple[Graph, NDArray[np.int64]] | None:
        """The graph with those kept nodes that it lacks, joined by their edges; None where few edges can be."""
        index, count = rows_by_hash(graph), graph.num_nodes
        rows = rows_of(index, self.nodes.ids)
        absent = rows < 0
        rows[absent] = count + np.arange(absent.sum())
        others = rows_of(index, self.nodes.neighbours)
        own = dict(zip(self.nodes.ids.tolist(), rows.tolist(), strict=True))
        among = np.array([own.get(name, -1) for name in self.nodes.neighbours.tolist()], dtype=np.int64)
        others = np.where(others >= 0, others, among)
        if len(others) == 0 or (others >= 0).mean() < ENOUGH:
            return None
        joins = absent[self.nodes.ends] & (others >= 0)
        starts, ends = rows[self.nodes.ends[joins]], others[joins]
        whole = sp.coo_array(graph.adjacency)
        sources = np.concatenate([whole.row, starts, ends])
        targets = np.concatenate([whole.col, ends, starts])
        size = count + int(absent.sum())
        adjacency = sp.csr_array((np.ones(len(sources), dtype=np.float32), (sources, targets)), shape=(size, size))
        adjacency.sum_duplicates()
        adjacency.data[:] = 1
        added = kept[absent]
        names = [f"calibration {row}" for row in range(len(added))]
        joined = Graph(
            features=stacked(graph.features, added),
            adjacency=adjacency,
            labels=np.full(size, -1),
            node_ids=np.array([*map(str, graph.node_ids.tolist()), *names], dtype=object),
            feature_names=graph.feature_names,
        )
        return joined, rows

    # -- in a model file ---------------------------------------------------------------------------------------

    def state(self) -> dict[str, torch.Tensor]:
        """The numbers, as named tensors."""
        return tensors_of({**vars(self), "nodes": None}) | self.nodes.state()

    @classmethod
    def restored(cls, state: dict[str, torch.Tensor], prefix: str, num_features: int) -> Calibration:
        """The inverse of :meth:`state`, from tensors whose names begin with a prefix."""
        nodes = KnownNodes.restored(state, prefix)
        count = len(nodes.ids)
        scores = tensor_of(state, f"{prefix}scores", torch.float64, count).numpy()
        degrees = tensor_of(state, f"{prefix}degrees", torch.int64, count).numpy()
        labels = tensor_of(state, f"{prefix}labels", torch.int64, count).numpy()
        features = weights = None
        if f"{prefix}features" in state:
            features = tensor_of(state, f"{prefix}features", torch.float32, count, num_features).numpy()
        if f"{prefix}error_weights" in state:
            weights = tensor_of(state, f"{prefix}error_weights", torch.float64, 5).numpy()
        return cls(nodes, scores, degrees, labels, features, weights)
