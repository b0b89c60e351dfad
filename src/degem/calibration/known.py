"""Nodes that are found again in a graph that has grown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from degem.errors import ModelFileError
from degem.graph import Graph
from degem.model_file import tensor_of

ENOUGH = 0.5  # of the nodes, and of their edges, must be in a graph that has grown from the one they were in


@dataclass(frozen=True)
class KnownNodes:
    """Some nodes of a graph, as far as it takes to find them in a later one.

    Arguments:
        ids: Hashes of their ids.
        signatures: One number a node that tells its features, see :func:`signatures_of`.
        ends: For each of their edges the node, as a place in ``ids``.
        neighbours: For each of their edges the hash of the id of the other end.
    """

    ids: NDArray[np.int64]
    signatures: NDArray[np.float64]
    ends: NDArray[np.int64]
    neighbours: NDArray[np.int64]

    @classmethod
    def of(cls, graph: Graph, nodes: NDArray[np.int64]) -> KnownNodes:
        """Some nodes of a graph, by their rows.

        Example:
            >>> graph = Graph.from_arrays(features=np.eye(3), edges=[(0, 1), (1, 2)], node_ids=["a", "b", "c"])
            >>> KnownNodes.of(graph, np.array([1])).rows_in(graph.subgraph([2, 1]))
            array([1])
        """
        names = hashes_of(graph)
        ends, others = graph.adjacency[nodes].nonzero()
        return cls(names[nodes], signatures_of(graph, nodes), ends.astype(np.int64), names[others])

    def rows_in(self, graph: Graph) -> NDArray[np.int64] | None:
        """The rows of those that a graph holds; None if it has not grown from the graph they were in.

        It has if it holds at least half of them with half of their edges. Where its ids are mere places, which name
        any graph's nodes, half of the features must agree as well.
        """
        rows = _found(self.ids, graph)
        there = rows >= 0
        if not there.any() or there.mean() < ENOUGH or self._edges_in(graph, rows) < ENOUGH:
            return None
        places = graph.node_ids.dtype.kind in "iu" and bool((graph.node_ids == np.arange(graph.num_nodes)).all())
        if places and np.isclose(signatures_of(graph, rows[there]), self.signatures[there], rtol=1e-4).mean() < ENOUGH:
            return None
        return rows[there]

    def neighbours_in(self, graph: Graph) -> NDArray[np.int64]:
        """For each edge the row of the other end, −1 where the graph lacks it."""
        return _found(self.neighbours, graph)

    def _edges_in(self, graph: Graph, rows: NDArray[np.int64]) -> float:
        """The share of the edges between nodes of the graph that are there still."""
        sources, targets = rows[self.ends], self.neighbours_in(graph)
        both = (sources >= 0) & (targets >= 0)
        if not both.any():
            return 1.0 if len(self.ends) == 0 else 0.0
        near = graph.adjacency[sources[both]]
        present = np.repeat(np.flatnonzero(both), np.diff(near.indptr))[
            near.indices == np.repeat(targets[both], np.diff(near.indptr))
        ]
        return len(np.unique(present)) / int(both.sum())

    def state(self) -> dict[str, torch.Tensor]:
        """The numbers, as named tensors."""
        arrays = {"ids": self.ids, "signatures": self.signatures, "ends": self.ends, "neighbours": self.neighbours}
        return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}

    @classmethod
    def restored(cls, state: dict[str, torch.Tensor], prefix: str) -> KnownNodes:
        """The inverse of :meth:`state`, from tensors whose names begin with a prefix."""
        ids = tensor_of(state, f"{prefix}ids", torch.int64, None)
        signatures = tensor_of(state, f"{prefix}signatures", torch.float64, len(ids))
        ends = tensor_of(state, f"{prefix}ends", torch.int64, None)
        neighbours = tensor_of(state, f"{prefix}neighbours", torch.int64, len(ends))
        if len(ends) and not (ends.min() >= 0 and ends.max() < len(ids)):
            raise ModelFileError("the model file's known nodes have edges of other nodes: fit and save the model again")
        return cls(ids.numpy(), signatures.numpy(), ends.numpy(), neighbours.numpy())


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
    return hashed(graph.node_ids)


def hashed(ids: NDArray[Any]) -> NDArray[np.int64]:
    """A hash of each id, of its text.

    Example:
        >>> bool((hashed(np.array([7])) == hashed(np.array(["7"]))).all())
        True
    """
    from pandas.util import hash_array  # slow to load, and a detector that is only described does without

    return np.asarray(hash_array(ids.astype(str).astype(object)).view(np.int64))


def _found(wanted: NDArray[np.int64], graph: Graph) -> NDArray[np.int64]:
    """The row of each hash of an id in a graph, −1 where there is none."""
    names = hashes_of(graph)
    order = np.argsort(names)
    places = np.minimum(np.searchsorted(names[order], wanted), len(names) - 1)
    rows = order[places]
    return np.where(names[rows] == wanted, rows, -1)
