"""What is acknowledged and in no snapshot yet: nodes that come and go, and provisional scores of new ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from degem.errors import DegemError, quoted
from degem.serve.events import COME_OR_GO, OF_EDGES, WITH_FEATURES, AddEdge, AddNode, Batch, RemoveNode, UpdateNode
from degem.serve.provisional import NewRows
from degem.serve.snapshot import Snapshot
from degem.serve.store import Stored


class EventError(DegemError):
    """An event names a node that is not there, or one that is there already, or does not fit the model."""


@dataclass
class NewNode:
    """A new node that no snapshot holds yet.

    Arguments:
        event: The number of the event that it came with.
        features: Its features.
        edges: The weights of its edges, by its neighbours' ids.
        told: What is known of it, once it has a provisional score.
    """

    event: int
    features: Sequence[float]
    edges: dict[str, float] = field(default_factory=dict)
    told: dict[str, Any] | None = None


class Intake:
    """What batches said that no snapshot has yet. Whoever changes it holds a lock.

    Arguments:
        num_features: How many features a node has.
        weighted: Whether edges have weights.
    """

    def __init__(self, num_features: int, *, weighted: bool) -> None:
        self.num_features, self.weighted = num_features, weighted
        self.new: dict[str, NewNode] = {}
        self._there: dict[str, tuple[int, bool]] = {}
        self._received: dict[int, float] = {}

    def waiting_since(self, event: int) -> float | None:
        """When the oldest batch behind an event was received."""
        return min((at for last, at in list(self._received.items()) if last > event), default=None)

    def check(self, batch: Batch, now: Snapshot) -> dict[str, bool]:
        """Refuse a batch that does not fit the graph; return which nodes it adds and removes."""
        there: dict[str, bool] = {}
        before: dict[str, bool] = {}  # asked once for each node: a batch names some of them often

        def is_there(node: str) -> bool:
            if node in there:
                return there[node]
            if node not in before:
                before[node] = self._there[node][1] if node in self._there else now.row(node) is not None
            return before[node]

        for position, event in enumerate(batch.events):
            if isinstance(event, WITH_FEATURES) and len(event.features) != self.num_features:
                found = f"{len(event.features)} features, the model has {self.num_features}"
                raise EventError(f"events[{position}]: {found}")
            if isinstance(event, AddEdge) and event.weight != 1 and not self.weighted:
                raise EventError(f"events[{position}]: the model was fitted without weights of edges: leave weight out")
            is_new = isinstance(event, AddNode)
            for node in (event.source, event.target) if isinstance(event, OF_EDGES) else (event.id,):
                if is_there(node) == is_new:
                    fault = f"node {quoted(node)} is there already: use update_node"
                    raise EventError(f"events[{position}]: {fault if is_new else f'there is no node {quoted(node)}'}")
            if isinstance(event, COME_OR_GO):
                there[event.id] = is_new
        return there

    def add(self, batch: Batch, stored: Stored, there: dict[str, bool]) -> list[str]:
        """Take in a batch that is stored; return the new nodes that it is about."""
        self._received[stored.last] = time.time()
        self._there.update((node, (stored.last, is_there)) for node, is_there in there.items())
        about: dict[str, None] = {}
        for number, event in enumerate(batch.events, stored.first):
            if isinstance(event, AddNode):
                self.new[event.id] = NewNode(number, event.features)
                about[event.id] = None
            elif isinstance(event, UpdateNode):
                if event.id in self.new:
                    self.new[event.id].features = event.features
                    about[event.id] = None
            elif isinstance(event, RemoveNode):
                self.new.pop(event.id, None)
                about.pop(event.id, None)
                for node, new in self.new.items():
                    if new.edges.pop(event.id, None) is not None:
                        about[node] = None
            else:
                for node, other in ((event.source, event.target), (event.target, event.source)):
                    if node in self.new:
                        self.new[node].edges.pop(other, None)
                        if isinstance(event, AddEdge):
                            self.new[node].edges[other] = event.weight
                        about[node] = None
        return list(about)

    def forget(self, event: int) -> None:
        """Forget what a snapshot as of an event has."""
        for last in [last for last in self._received if last <= event]:
            del self._received[last]
        for node in [node for node, (last, _) in self._there.items() if last <= event]:
            del self._there[node]
        for node in [node for node, new in self.new.items() if new.event <= event]:
            del self.new[node]

    def rows_of(self, nodes: Sequence[str], now: Snapshot) -> tuple[list[str], NewRows]:
        """Some new nodes, and behind them those that they are joined to, as rows to score."""
        group = dict.fromkeys(node for node in nodes if node in self.new)
        for node in list(group):
            group.update(dict.fromkeys(other for other in self.new[node].edges if other in self.new))
        places = {node: place for place, node in enumerate(group)}
        near: dict[int, int] = {}
        edges: list[tuple[int, int, float]] = []
        among: list[tuple[int, int, float]] = []
        for place, node in enumerate(group):
            for other, weight in self.new[node].edges.items():
                if other in places:
                    among.append((place, places[other], weight))
                elif (row := now.row(other)) is not None:
                    edges.append((place, near.setdefault(row, len(near)), weight))
        features = np.array([self.new[node].features for node in group], dtype=np.float32)
        size, rows = len(group), np.array(list(near), dtype=np.int64)
        return list(group), NewRows(features, rows, _sparse(edges, size, len(near)), _sparse(among, size, size))


def _sparse(entries: list[tuple[int, int, float]], height: int, width: int) -> sp.csr_array:
    """A matrix from its entries, sorted by rows."""
    rows, columns, weights = np.array(entries, dtype=np.float64).reshape(-1, 3).T
    starts = np.searchsorted(rows, np.arange(height + 1)).astype(np.int32)
    return sp.csr_array((weights.astype(np.float32), columns.astype(np.int32), starts), shape=(height, width))
