"""Nodes that are found again in a graph that has grown, and which nodes a fit has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from degem.errors import ModelFileError
from degem.graph import Graph
from degem.model_file import tensor_of, tensors_of

if TYPE_CHECKING:
    import pandas as pd

ENOUGH = 0.5  # of the nodes, and of their edges, must be in a graph that has grown from the one they were in
MOST_EDGES = 10_000  # that are looked for


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
        names = hashed(graph.node_ids)
        ends, others = graph.adjacency[nodes].nonzero()
        return cls(names[nodes], signatures_of(graph, nodes), ends.astype(np.int64), names[others])

    def rows_in(self, graph: Graph) -> NDArray[np.int64] | None:
        """The rows of those that a graph holds; None if it has not grown from the graph they were in."""
        places = self.places_in(graph)
        return None if places is None else places[places >= 0]

    def places_in(self, graph: Graph) -> NDArray[np.int64] | None:
        """The row of each, −1 where a graph lacks it; None if the graph has not grown from the one they were in.

        It has if it holds at least half of them with half of their edges. Where its ids are mere places, which name
        any graph's nodes, half of the features must agree as well.
        """
        index = rows_by_hash(graph)
        rows = rows_of(index, self.ids)
        there = rows >= 0
        if not there.any() or there.mean() < ENOUGH or self._edges_in(graph, rows, index) < ENOUGH:
            return None
        agree = np.isclose(signatures_of(graph, rows[there]), self.signatures[there], rtol=1e-4)
        if ids_are_places(graph) and agree.mean() < ENOUGH:
            return None
        return rows

    def _edges_in(self, graph: Graph, rows: NDArray[np.int64], index: pd.Series[int]) -> float:
        """The share of the edges between nodes of the graph that are there still, of at most 10,000 of them."""
        some = slice(None, None, max(1, len(self.ends) // MOST_EDGES))
        sources, targets = rows[self.ends[some]], rows_of(index, self.neighbours[some])
        both = (sources >= 0) & (targets >= 0)
        if not both.any():
            return 1.0 if len(self.ends) == 0 else 0.0
        found = sp.coo_array(graph.adjacency[sources[both], targets[both]])
        return np.count_nonzero(found.data) / int(both.sum())

    def state(self) -> dict[str, torch.Tensor]:
        """The numbers, as named tensors."""
        return tensors_of(vars(self))

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


def hashed(ids: NDArray[Any]) -> NDArray[np.int64]:
    """A hash of each id, of its text.

    Example:
        >>> bool((hashed(np.array([7])) == hashed(np.array(["7"]))).all())
        True
    """
    from pandas.util import hash_array  # slow to load, and a detector that is only described does without

    texts = np.empty(len(ids), dtype=object)  # not as text of one width: one long id would make all long
    texts[:] = [str(value) for value in ids.tolist()]
    return np.asarray(hash_array(texts).view(np.int64))


def ids_are_places(graph: Graph) -> bool:
    """Whether the ids of a graph are 0, 1, 2, …: those of a graph that was given none."""
    ids = graph.node_ids
    return ids.dtype.kind in "iu" and bool((ids == np.arange(graph.num_nodes)).all())


def rows_by_hash(graph: Graph) -> pd.Series[int]:
    """The row of each node of a graph, by the hash of its id; of ids that two nodes share none."""
    import pandas as pd

    hashes = pd.Index(hashed(graph.node_ids))
    return pd.Series(np.arange(len(hashes)), index=hashes)[~hashes.duplicated(keep=False)]


def rows_of(index: pd.Series[int], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each hash, −1 where there is none."""
    return np.array(index.reindex(wanted, fill_value=-1), dtype=np.int64)


@dataclass(frozen=True)
class FitNodes:
    """The nodes of the graph of a fit, as hashes of their ids.

    Arguments:
        present: All of them, sorted.
        seen: Those of the training graph, sorted: all but the calibration nodes.
    """

    present: NDArray[np.int64]
    seen: NDArray[np.int64]

    @classmethod
    def of(cls, graph: Graph, training_graph: Graph) -> FitNodes:
        """The nodes of a graph, and those of the training graph that was made of it.

        Example:
            >>> graph = Graph.from_arrays(features=np.eye(2), edges=[(0, 1)], node_ids=["a", "b"])
            >>> FitNodes.of(graph, graph.subgraph([0])).new_in(graph)
            array([False, False])
        """
        return cls(np.sort(hashed(graph.node_ids)), np.sort(hashed(training_graph.node_ids)))

    def new_in(self, graph: Graph) -> NDArray[np.bool_]:
        """Which nodes of a graph were not there at the fit."""
        return ~np.isin(hashed(graph.node_ids), self.present)

    def seen_in(self, graph: Graph) -> NDArray[np.bool_]:
        """Which nodes of a graph the fit has seen."""
        return np.isin(hashed(graph.node_ids), self.seen)

    def state(self) -> dict[str, torch.Tensor]:
        """The hashes, as named tensors."""
        return tensors_of(vars(self))

    @classmethod
    def restored(cls, state: dict[str, torch.Tensor], prefix: str) -> FitNodes:
        """The inverse of :meth:`state`, from tensors whose names begin with a prefix."""
        return cls(*(tensor_of(state, f"{prefix}{name}", torch.int64, None).numpy() for name in ("present", "seen")))
