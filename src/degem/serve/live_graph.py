"""The graph as events have made it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.calibration.known import hashed
from degem.graph import Graph
from degem.ops.features import Features
from degem.serve.events import WITH_FEATURES, AddEdge, AddNode, Event, RemoveNode

Rows = NDArray[np.int64]
NAMES = "name_hash"


@dataclass(frozen=True)
class Changes:
    """What some events did to a graph.

    Arguments:
        begun: The rows whose features are new or have changed.
        touched: The rows whose edges have changed.
        arrivals: New nodes that are still there: the event each came with, and its row.
        ignored: How many events named a node that was not there.
    """

    begun: Rows
    touched: Rows
    arrivals: list[tuple[int, int]]
    ignored: int


class LiveGraph:
    """A graph that changes. A row is never given to another node: what is removed leaves an isolated row behind.

    Arguments:
        graph: The graph to begin with; a column ``name_hash``, if it has one, says by which hash of an id calibration
            nodes are found again.
        event: The last event that is in it.

    Example:
        >>> live = LiveGraph(Graph.from_arrays(features=[[0.0], [1.0]], edges=[(0, 1), (1, 0)]))
        >>> new = AddNode(op="add_node", id="x", features=[2.0])
        >>> edge = AddEdge(op="add_edge", source="x", target="0")
        >>> live.apply([(1, new), (2, edge)]).touched
        array([0, 2])
        >>> live.graph()
        Graph(3 nodes, 2 edges, 1 features)
    """

    def __init__(self, graph: Graph, event: int = 0) -> None:
        self.event = event
        self.ids = [str(name) for name in graph.node_ids.tolist()]
        self.row_of = {name: row for row, name in enumerate(self.ids)}
        self.names = graph.columns.get(NAMES, hashed(graph.node_ids))
        self.alive = np.ones(graph.num_nodes, dtype=np.bool_)
        self.adjacency = graph.adjacency
        self._base = graph
        self._new: dict[int, NDArray[np.float32]] = {}  # features that are not those of the base

    def apply(self, events: Iterable[tuple[int, Event]]) -> Changes:
        """Apply events, each with its number. An event that names a node that is not there does nothing."""
        before, edges, ignored = len(self.ids), _EdgeChanges(self.adjacency), 0
        begun: dict[int, int] = {}
        gone: list[int] = []
        for number, event in events:
            self.event = number
            if isinstance(event, WITH_FEATURES):
                row = self.row_of.get(event.id)
                if row is None and isinstance(event, AddNode):
                    row = self.row_of[event.id] = len(self.ids)
                    self.ids.append(event.id)
                if row is not None:
                    begun.setdefault(row, number)
                    self._new[row] = np.array(event.features, dtype=np.float32)
                ignored += row is None
            elif isinstance(event, RemoveNode):
                row = self.row_of.pop(event.id, None)
                if row is not None:
                    edges.isolate(row)
                    self._new.pop(row, None)
                    begun.pop(row, None)
                    gone.append(row)
                ignored += row is None
            else:
                ends = self.row_of.get(event.source), self.row_of.get(event.target)
                if ends[0] is not None and ends[1] is not None:
                    edges.set(ends[0], ends[1], event.weight if isinstance(event, AddEdge) else 0.0)
                ignored += None in ends
        added = len(self.ids) - before
        self.alive = np.concatenate([self.alive, np.ones(added, dtype=np.bool_)])
        self.alive[gone] = False
        self.names = np.concatenate([self.names, hashed(np.array(self.ids[before:], dtype=object))])
        self.adjacency, touched = edges.applied(len(self.ids))
        rows = np.array(sorted({*begun, *range(before, len(self.ids))}), dtype=np.int64)
        arrivals = [(number, row) for row, number in begun.items() if row >= before]
        return Changes(rows, touched, arrivals, ignored)

    def features(self, rows: Rows) -> Features:
        """The features of some rows; zeros of a node that is gone."""
        base = self._base.features
        kept = np.array([row < base.shape[0] and row not in self._new for row in rows.tolist()], dtype=np.bool_)
        nothing = np.zeros(base.shape[1], dtype=np.float32)
        new = np.array([self._new.get(row, nothing) for row in rows[~kept].tolist()], dtype=np.float32)
        if kept.all():
            return base[rows]
        new = new.reshape(-1, base.shape[1])
        order = np.argsort(np.concatenate([np.flatnonzero(kept), np.flatnonzero(~kept)]))
        if isinstance(base, sp.csr_array):
            return sp.csr_array(sp.csr_array(sp.vstack([base[rows[kept]], sp.csr_array(new)]))[order])
        return np.asarray(np.vstack([base[rows[kept]], new])[order])

    def graph(self) -> Graph:
        """The nodes that are there, as a graph."""
        rows, base = np.flatnonzero(self.alive), self._base
        adjacency = self.adjacency if len(rows) == len(self.ids) else sp.csr_array(self.adjacency[rows][:, rows])
        labels = np.full(len(self.ids), -1)
        labels[: base.num_nodes] = base.labels
        return Graph(
            features=self.features(rows),
            adjacency=adjacency,
            labels=labels[rows],
            node_ids=np.array([self.ids[row] for row in rows.tolist()], dtype=object),
            feature_names=base.feature_names,
            class_names=base.class_names,
            columns={NAMES: self.names[rows]},
        )


class _EdgeChanges:
    """Edges that come and go, gathered before they are put into an adjacency.

    Arguments:
        adjacency: The adjacency before.
    """

    def __init__(self, adjacency: sp.csr_array) -> None:
        self._before = adjacency
        self._wanted: defaultdict[int, dict[int, float]] = defaultdict(dict)

    def set(self, source: int, target: int, weight: float) -> None:
        """Say what an edge is to weigh; 0 is no edge."""
        self._wanted[source][target] = self._wanted[target][source] = weight

    def isolate(self, row: int) -> None:
        """Take away every edge of a node."""
        ends = self._before.indptr[row : row + 2] if row < self._before.shape[0] else (0, 0)
        for other in {*self._before.indices[ends[0] : ends[1]].tolist(), *self._wanted[row]}:
            self.set(row, other, 0.0)

    def applied(self, num_nodes: int) -> tuple[sp.csr_array, Rows]:
        """The adjacency after, of so many nodes, and the rows in which it differs."""
        before = self._before
        grown = np.append(before.indptr, np.full(num_nodes - before.shape[0], before.nnz, dtype=before.indptr.dtype))
        after = sp.csr_array((before.data, before.indices, grown), shape=(num_nodes, num_nodes))
        pairs = [(row, other) for row, others in self._wanted.items() for other in others]
        rows, others = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        weights = [weight for others in self._wanted.values() for weight in others.values()]
        wanted = np.array(weights, dtype=np.float32)
        there = sp.coo_array(after[rows, others]).toarray().ravel() if pairs else wanted
        differs = wanted != there
        for change in (-there, wanted):  # one after the other: a sum of both would round
            chosen = differs & (change != 0)
            if chosen.any():
                after = after + sp.csr_array((change[chosen], (rows[chosen], others[chosen])), shape=after.shape)
                after.eliminate_zeros()
        for part in (after.data, after.indices, after.indptr):
            part.flags.writeable = False  # readers hold it
        return after, np.unique(rows[differs])
