"""From a graph to what DeGEM's default sees: projected hop features of some nodes, of corrupted ones, or of all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from degem.detectors.degem.encoding import NUM_STATISTICS, FeatureRows
from degem.detectors.degem.hop_batch import HopBatch
from degem.graph import Graph
from degem.ops.features import Features
from degem.ops.mapped import release
from degem.ops.neighbours import divisors, returning, root_degrees, strengths
from degem.propagation import Columns, KeptHops, choose_propagator
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
        degrees = strengths(graph.adjacency)
        statistics = np.ones((graph.num_nodes, NUM_STATISTICS), dtype=np.float32)
        width = projection.shape[1]
        small = 4 * width * graph.num_nodes <= KEPT_BYTES
        projected: list[NDArray[np.float32]] = []
        for start in range(0, graph.num_nodes, BLOCK):
            block = slice(start, start + BLOCK)
            encoded = self._encoded(block)
            statistics[block] = rows.statistics(encoded)
            if small:
                projected.append(np.asarray(encoded @ projection, dtype=np.float32))
            release(graph.features)
        inverse = np.asarray(1 / divisors(graph.adjacency), dtype=np.float32)
        self.per_node = (statistics, degrees, returning(graph.adjacency, inverse))
        self.columns = Columns.of(np.concatenate(projected)) if small else Columns.by_block(width, self._projected)
        self.hops, self.root = tuple(hops), root_degrees(graph.adjacency)
        self.propagator = choose_propagator(
            4 * len(hops) * graph.num_nodes * width, memory_budget=memory_budget, on_progress=on_progress
        )
        self._kept: KeptHops | None = None

    @property
    def num_nodes(self) -> int:
        """The number of nodes n."""
        return self.graph.num_nodes

    def keep(self, nodes: NDArray[np.int64]) -> HopBatch:
        """Propagate now, keep every hop in memory or on disk for :meth:`blocks`, and return some nodes."""
        self._kept = self._propagated(nodes)
        return self._on_device(self._kept.sample, nodes)

    def close(self) -> None:
        """Free what was kept."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def batch(self, nodes: NDArray[np.int64]) -> HopBatch:
        """Some nodes as the model sees them."""
        return self._on_device(self._sample(self.columns, nodes), nodes)

    def corrupted(self, nodes: NDArray[np.int64], permutation: NDArray[np.int64]) -> HopBatch:
        """The same nodes where every node has the features of another: Deep Graph Infomax's negatives."""
        statistics, degrees, shares = self.per_node
        of = permutation[nodes]
        per_node = (statistics[of], degrees[nodes], shares[nodes])
        return self._batch(self._sample(self.columns.permuted(permutation), nodes), per_node)

    def blocks(self) -> Iterator[HopBatch]:
        """Every node in order, some at a time."""
        with contextlib.nullcontext(self._kept) if self._kept else self._propagated() as kept:
            for start, hops in kept.blocks(SCORED_AT_ONCE):
                rows = slice(start, start + hops.shape[1])
                yield self._on_device(hops, rows)

    def _propagated(self, sampled: NDArray[np.int64] | None = None) -> KeptHops:
        return self.propagator.keep(self.graph.adjacency, self.columns.over(self.root), self.hops, sampled=sampled)

    def _sample(self, columns: Columns, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.propagator.sample(self.graph.adjacency, columns.over(self.root), self.hops, nodes)

    def _projected(self, rows: slice, columns: slice) -> NDArray[np.float32]:
        encoded = self._encoded(rows)
        release(self.graph.features)
        return np.asarray(encoded @ self.projection[:, columns], dtype=np.float32)

    def _encoded(self, rows: slice) -> Features:
        if rows.start == 0 and rows.stop >= self.num_nodes:
            return self.rows.encode(self.graph.features)  # SciPy copies a slice
        return self.rows.encode(self.graph.features[rows])

    def _on_device(self, hops: NDArray[np.float32], nodes: NDArray[np.int64] | slice) -> HopBatch:
        return self._batch(hops, tuple(values[nodes] for values in self.per_node))

    def _batch(self, hops: NDArray[np.float32], per_node: tuple[NDArray[np.float32], ...]) -> HopBatch:
        return HopBatch.of(*(torch.from_numpy(part).to(self.device) for part in (hops, *per_node)))
