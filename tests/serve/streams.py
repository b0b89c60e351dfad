"""Batches of events, and random ones."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

from degem import Graph
from degem.serve.events import Batch
from degem.serve.service import Service

PATIENCE = 30.0


def submit(service: Service, sequence: int, *events: dict[str, Any], client: str = "test") -> dict[str, Any]:
    """Submit a batch, and return what the service says."""
    body = json.dumps({"client": client, "sequence": sequence, "events": events}).encode()
    return service.submit(Batch.model_validate_json(body), body)


def has_come(service: Service, event: int) -> bool:
    """Wait until the scores have an event; whether they have."""
    until = time.monotonic() + PATIENCE
    while service.snapshot.event < event and time.monotonic() < until and service.failure is None:
        time.sleep(0.005)
    return service.snapshot.event >= event


class RandomEvents:
    """Random events that fit a graph: nodes and edges come, change and go, now and then one that was there before.

    Arguments:
        graph: The graph.
        seed: Seed of the draw.
        weighted: Whether new edges have weights.
    """

    def __init__(self, graph: Graph, seed: int, *, weighted: bool = False) -> None:
        self.weighted = weighted
        self.rng, self.features = np.random.default_rng(seed), np.asarray(graph.features)
        self.nodes = [str(name) for name in graph.node_ids]
        self.gone: list[str] = []
        self.edges = {
            frozenset((self.nodes[a], self.nodes[b])) for a, b in zip(*graph.adjacency.nonzero(), strict=True)
        }
        self.count = 0

    def batch(self, size: int) -> list[dict[str, Any]]:
        """Some events."""
        return [event for _ in range(size) for event in self._some()]

    def _some(self) -> list[dict[str, Any]]:
        kind = self.rng.choice(["add", "again", "update", "remove", "join", "part"], p=[0.25, 0.05, 0.2, 0.1, 0.2, 0.2])
        if kind == "add" or (kind == "again" and not self.gone):
            self.count += 1
            return self._added(f"new {self.count}")
        if kind == "again":
            return self._added(self.gone.pop())
        if kind == "update":
            return [{"op": "update_node", "id": self._node(), "features": self._features()}]
        if kind == "remove":
            node = self._node()
            self.nodes.remove(node)
            self.gone.append(node)
            self.edges = {edge for edge in self.edges if node not in edge}
            return [{"op": "remove_node", "id": node}]
        if kind == "join":
            return [self._joined(*self.rng.choice(self.nodes, 2, replace=False).tolist())]
        edge = sorted(self.edges, key=sorted)[self.rng.integers(len(self.edges))]
        self.edges.remove(edge)
        source, target = sorted(edge)
        return [{"op": "remove_edge", "source": source, "target": target}]

    def _added(self, node: str) -> list[dict[str, Any]]:
        others = self.rng.choice(self.nodes, self.rng.integers(0, 5), replace=False).tolist()
        self.nodes.append(node)
        added = {"op": "add_node", "id": node, "features": self._features()}
        return [added, *(self._joined(node, other) for other in others)]

    def _joined(self, source: str, target: str) -> dict[str, Any]:
        self.edges.add(frozenset((source, target)))
        edge: dict[str, Any] = {"op": "add_edge", "source": source, "target": target}
        return edge | {"weight": float(self.rng.integers(1, 40)) / 8} if self.weighted else edge

    def _node(self) -> str:
        return self.nodes[self.rng.integers(len(self.nodes))]

    def _features(self) -> list[float]:
        row = self.features[self.rng.integers(len(self.features))]
        return (row + 0.1 * self.rng.random(len(row))).round(4).tolist()
