"""Calibration nodes: held-out in-distribution nodes that are found again in a graph that has grown."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from degem.errors import CalibrationWarning
from degem.graph import Graph

ENOUGH = 0.5  # of the calibration nodes must be in a graph, or p-values come from the scores of the fit
ABSENT = (
    "the graph lacks the calibration nodes: p-values compare with their scores in the graph of the fit, "
    "and flag too much where that has grown"
)


@dataclass(frozen=True)
class KeptNodes:
    """What it takes to join the calibration nodes to a graph that lacks them.

    Arguments:
        features: Their features, of shape (n, d₀).
        ends: For each of their edges the calibration node, as a row of ``features``.
        neighbour_ids: For each of their edges the id of the other end.
    """

    features: NDArray[np.float32]
    ends: NDArray[np.int64]
    neighbour_ids: NDArray[Any]


@dataclass(frozen=True)
class Calibration:
    """In-distribution nodes that no fit has seen: new in-distribution nodes score as they do, in the same graph.

    Neither were in the training graph, both are in the one that is scored, in one pass: their scores are exchangeable
    (Zargarbashi & Bojchevski, *Conformal inductive graph neural networks*, ICLR 2024).

    Arguments:
        node_ids: Their ids, as text.
        scores: Their scores in the graph that they were taken from.
        degrees: Their degrees there.
        signatures: One number a node that tells its features, see :func:`signatures_of`.
        known: Hashes of the ids of all nodes that were there at the fit, sorted.
        kept: Their features and edges, if the model is to be whole by itself.
    """

    node_ids: NDArray[np.str_]
    scores: NDArray[np.float64]
    degrees: NDArray[np.int64]
    signatures: NDArray[np.float64]
    known: NDArray[np.int64]
    kept: KeptNodes | None = None

    @classmethod
    def of(
        cls,
        graph: Graph,
        nodes: NDArray[np.int64],
        scores: NDArray[np.float64],
        *,
        keep: bool,
        known: NDArray[np.int64] | None = None,
    ) -> Calibration:
        """Calibration on some nodes of a graph that was scored.

        Arguments:
            graph: The graph.
            nodes: The nodes.
            scores: The scores of every node of the graph.
            keep: Whether to keep their features and edges.
            known: Hashes of the ids of the nodes that were there at the fit; default: those of this graph.
        """
        return cls(
            graph.node_ids[nodes].astype(str),
            np.asarray(scores, dtype=np.float64)[nodes],
            graph.degrees[nodes],
            signatures_of(graph, nodes),
            np.sort(hashes_of(graph)) if known is None else known,
            _kept(graph, nodes) if keep else None,
        )

    def new_in(self, graph: Graph) -> NDArray[np.bool_]:
        """Which nodes of a graph were not there at the fit."""
        return ~np.isin(hashes_of(graph), self.known)

    def __len__(self) -> int:
        """The number of calibration nodes."""
        return len(self.scores)

    def joined(self, graph: Graph) -> tuple[Graph, NDArray[np.int64] | None]:
        """The graph to score for p-values, and the calibration nodes in it; None where it lacks them.

        It is the graph itself, or the graph and the kept nodes behind its own.
        """
        rows, names_are_places = self._rows(graph)
        found = rows[rows >= 0]
        if len(found) and len(found) >= ENOUGH * len(self):
            same = np.isclose(signatures_of(graph, found), self.signatures[rows >= 0], rtol=1e-4).mean()
            if not names_are_places or same >= ENOUGH:  # places name any graph's nodes: features must agree
                return graph, found
        elif self.kept is not None and not names_are_places:
            whole = _with_kept(graph, self.kept)
            if whole is not None:
                return whole, np.arange(graph.num_nodes, whole.num_nodes)
        if len(self):
            warnings.warn(CalibrationWarning(ABSENT), stacklevel=4)
        return graph, None

    def _rows(self, graph: Graph) -> tuple[NDArray[np.int64], bool]:
        """The row of each calibration node in the graph, −1 where it has none; and whether ids are mere places."""
        places = graph.node_ids.dtype.kind in "iu" and bool((graph.node_ids == np.arange(graph.num_nodes)).all())
        wanted = {name: row for row, name in enumerate(self.node_ids.tolist())}
        rows = np.full(len(self), -1, dtype=np.int64)
        for row, name in enumerate(map(str, graph.node_ids.tolist())):
            if name in wanted:
                rows[wanted[name]] = row
        return rows, places

    # -- in a model file ---------------------------------------------------------------------------------------

    def state(self) -> dict[str, torch.Tensor]:
        """The numbers, as named tensors."""
        found: dict[str, NDArray[Any]] = {"scores": self.scores, "degrees": self.degrees, "signatures": self.signatures}
        found["known"] = self.known
        if self.kept is not None:
            found |= {"features": self.kept.features, "ends": self.kept.ends}
        return {name: torch.from_numpy(np.array(array)) for name, array in found.items()}

    def names(self) -> dict[str, list[str] | None]:
        """The ids, as JSON knows them."""
        neighbours = None if self.kept is None else self.kept.neighbour_ids.astype(str).tolist()
        return {"node_ids": self.node_ids.tolist(), "neighbour_ids": neighbours}

    @classmethod
    def restored(cls, state: dict[str, torch.Tensor], names: dict[str, Any]) -> Calibration:
        """The inverse of :meth:`state` and :meth:`names`."""
        arrays = {name: tensor.numpy() for name, tensor in state.items()}
        kept = None
        if names["neighbour_ids"] is not None:
            kept = KeptNodes(arrays["features"], arrays["ends"], np.array(names["neighbour_ids"], dtype=str))
        ids = np.array(names["node_ids"], dtype=str)
        return cls(ids, arrays["scores"], arrays["degrees"], arrays["signatures"], arrays["known"], kept)


def signatures_of(graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """One number a node that equal features share and others hardly ever: their product with a fixed random vector.

    Example:
        >>> graph = Graph.from_arrays(features=[[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]], edges=[(0, 1)])
        >>> first, second, third = signatures_of(graph, np.arange(3))
        >>> first == second, first == third
        (np.True_, np.False_)
    """
    weights = np.random.default_rng(0).uniform(0.5, 1.5, graph.num_features)
    return np.asarray(graph.features[nodes] @ weights, dtype=np.float64)


def hashes_of(graph: Graph) -> NDArray[np.int64]:
    """A hash of the id of each node, the same for 7 and "7"."""
    from pandas.util import hash_array  # slow to load, and a detector that is only described does without

    return hash_array(graph.node_ids.astype(str).astype(object)).view(np.int64)


def _kept(graph: Graph, nodes: NDArray[np.int64]) -> KeptNodes:
    features = graph.features[nodes]
    dense = features.toarray() if isinstance(features, sp.csr_array) else np.array(features)
    ends, others = graph.adjacency[nodes].nonzero()
    return KeptNodes(dense, ends.astype(np.int64), graph.node_ids[others].astype(str))


def _with_kept(graph: Graph, kept: KeptNodes) -> Graph | None:
    """The graph and the kept nodes, joined by those of their edges whose other end it has; None where most are gone."""
    wanted = set(kept.neighbour_ids.tolist())
    place = {name: row for row, name in enumerate(map(str, graph.node_ids.tolist())) if name in wanted}
    there = np.array([name in place for name in kept.neighbour_ids.tolist()], dtype=np.bool_)
    if len(there) == 0 or there.mean() < ENOUGH:
        return None
    others = np.array([place[name] for name in kept.neighbour_ids[there].tolist()], dtype=np.int64)
    count, ends = len(kept.features), kept.ends[there]
    links = sp.csr_array((np.ones(len(ends), dtype=np.float32), (ends, others)), shape=(count, graph.num_nodes))
    adjacency = sp.csr_array(sp.block_array([[graph.adjacency, links.T], [links, None]], format="csr"))
    adjacency.sort_indices()
    features = (
        sp.csr_array(sp.vstack([graph.features, sp.csr_array(kept.features)]))
        if isinstance(graph.features, sp.csr_array)
        else np.vstack([graph.features, kept.features])
    )
    return Graph(
        features=features,
        adjacency=adjacency,
        labels=np.full(graph.num_nodes + count, -1),
        node_ids=np.concatenate([graph.node_ids.astype(object), [f"calibration {row}" for row in range(count)]]),
        feature_names=graph.feature_names,
    )
