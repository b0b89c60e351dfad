"""From a graph to what DeGEM's default sees: projected hop features of some nodes, of corrupted ones, or of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from degem.detectors.degem.encoding import FeatureRows
from degem.detectors.degem.hop_batch import HopBatch
from degem.graph import Graph
from degem.ops.features import Features
from degem.ops.neighbours import divisors, returning, root_degrees, strengths
from degem.propagation import Columns, choose_propagator
from degem.propagation.propagator import Parts, taken
from degem.training import OnProgress, silent

BLOCK = 1 << 14
SCORED_AT_ONCE = 1 << 12  # many enough for calls to be cheap, few enough for the cache
KEPT_BYTES = 1 << 28


class HopInputs:
    """A graph's features, projected and propagated on demand.

    Arguments:
        graph: The graph; left as it is.
        rows: What is learnt of rows of features.
        projection: The projection P, of shape (d₀, r).
        hops: The hops wanted.
        device: Where batches are handed out.
        memory_budget: MiB that hop features may take in memory.
        on_progress: Told where propagation stands.
    """

    def __init__(
        self,
        graph: Graph,
        rows: FeatureRows,
        projection: NDArray[np.float32],
        hops: Sequence[int],
        *,
        device: str,
        memory_budget: float | None,
        on_progress: OnProgress = silent,
    ) -> None:
        self.graph, self.rows, self.projection, self.device = graph, rows, projection, device
        width = projection.shape[1]
        self.propagator = choose_propagator(
            4 * len(hops) * graph.num_nodes * width, memory_budget=memory_budget, on_progress=on_progress
        )
        small = 4 * width * graph.num_nodes <= KEPT_BYTES
        strips = [slice(0, width)] if small else []
        if self.propagator.remote:
            strips = self.propagator.strips(graph.num_nodes, width)
        looked_at = partial(_looked_at, rows, projection, strips)
        blocks = list(self.propagator.map_rows(looked_at, graph.features, block_rows=BLOCK))
        statistics = np.concatenate([part for part, *_ in blocks])
        degrees = strengths(graph.adjacency)
        inverse = np.asarray(1 / divisors(graph.adjacency), dtype=np.float32)
        self.per_node = (statistics, degrees, returning(graph.adjacency, inverse))
        if self.propagator.remote:
            self.columns = Columns.by_strip(strips, [parts for _, *parts in blocks])
        elif small:
            self.columns = Columns.of(np.concatenate([part for _, part in blocks]))
        else:
            self.columns = Columns.by_block(width, self._projected)
        self.hops, self.root = tuple(hops), root_degrees(graph.adjacency)

    @property
    def num_nodes(self) -> int:
        """The number of nodes n."""
        return self.graph.num_nodes

    def batch(self, nodes: NDArray[np.int64]) -> HopBatch:
        """Some nodes as the model sees them."""
        return self._on_device(self._sample(self.columns, nodes), nodes)

    def corrupted(self, nodes: NDArray[np.int64], permutation: NDArray[np.int64]) -> HopBatch:
        """The same nodes where every node has the features of another: Deep Graph Infomax's negatives."""
        statistics, degrees, shares = self.per_node
        of = permutation[nodes]
        per_node = (statistics[of], degrees[nodes], shares[nodes])
        return _batch(self.device, self._sample(self.columns.permuted(permutation), nodes), *per_node)

    def map(self, function: Callable[[HopBatch], Parts]) -> list[NDArray[np.float32]]:
        """What a function makes of every node, given some at a time."""
        on_batch = partial(_on_batch, function, self.device)
        with self.propagator.keep(self.graph.adjacency, self.columns.over(self.root), self.hops) as kept:
            made = self.propagator.map_rows(on_batch, kept, *self.per_node, block_rows=SCORED_AT_ONCE)
            return [np.concatenate(parts) for parts in zip(*made, strict=True)]

    def _sample(self, columns: Columns, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.propagator.sample(self.graph.adjacency, columns.over(self.root), self.hops, nodes)

    def _projected(self, rows: slice, columns: slice) -> NDArray[np.float32]:
        encoded = self.rows.encode(taken(self.graph.features, rows))
        return np.asarray(encoded @ self.projection[:, columns], dtype=np.float32)

    def _on_device(self, hops: NDArray[np.float32], nodes: NDArray[np.int64]) -> HopBatch:
        return _batch(self.device, hops, *(values[nodes] for values in self.per_node))


def _looked_at(
    rows: FeatureRows, projection: NDArray[np.float32], strips: Sequence[slice], features: Features
) -> Parts:
    """Statistics of rows of features, and strips of their projection."""
    encoded = rows.encode(features)
    projected = np.asarray(encoded @ projection, dtype=np.float32) if strips else projection
    return rows.statistics(encoded), *(projected[:, strip] for strip in strips)


def _on_batch(function: Callable[[HopBatch], Parts], device: str, *parts: NDArray[np.float32]) -> Parts:
    return function(_batch(device, *parts))


def _batch(device: str, *parts: NDArray[np.float32]) -> HopBatch:
    return HopBatch.of(*(torch.from_numpy(part).to(device) for part in parts))
