"""From a graph to what DeGEM's default sees: projected hop features of some nodes, of corrupted ones, or of all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from degem.detectors.degem.staged_model import HopBatch
from degem.graph import Graph
from degem.ops.features import Features, inverse, row_norms, scale_rows
from degem.ops.hop_store import HopSource, HopStore
from degem.ops.mapped import release

BLOCK = 1 << 14
SCORED_AT_ONCE = 1 << 12  # many enough for calls to be cheap, few enough for the cache
KEPT_BYTES = 1 << 28


class HopInputs:
    """A graph's features, projected and propagated on demand.

    Arguments:
        graph: The graph; left as it is.
        projection: The projection P, of shape (d₀, r + q).
        hops: The hops wanted.
        self_weight: The weight β of the node itself in propagation.
        normalize: Whether rows of features are scaled to unit sum first.
        device: Where batches are handed out.
        memory_budget: MiB that hop features may take in memory.
    """

    def __init__(
        self,
        graph: Graph,
        projection: NDArray[np.float32],
        hops: Sequence[int],
        *,
        self_weight: float,
        normalize: bool,
        device: str,
        memory_budget: float | None,
    ) -> None:
        self.graph, self.projection, self.device = graph, projection, device
        self.degrees = np.diff(graph.adjacency.indptr).astype(np.float32)
        self.scale, self.lengths = np.ones((2, graph.num_nodes), dtype=np.float32)
        width = projection.shape[1]
        small = 4 * width * graph.num_nodes <= KEPT_BYTES
        projected: list[NDArray[np.float32]] = []
        for start in range(0, graph.num_nodes, BLOCK):
            rows = slice(start, start + BLOCK)
            sums, lengths = row_norms(self._rows(rows))
            if normalize:
                self.scale[rows] = inverse(sums)
            self.lengths[rows] = lengths * self.scale[rows]
            if small:
                projected.append(self._projected(rows, slice(None)))
            release(graph.features)
        kept = projected[0] if len(projected) == 1 else np.concatenate(projected) if small else None
        self.source = HopSource(
            graph.adjacency,
            self._projected if kept is None else lambda rows, columns: kept[rows, columns],
            width,
            tuple(hops),
            self_weight,
            memory_budget,
        )
        self._kept: HopStore | None = None

    @property
    def num_nodes(self) -> int:
        """The number of nodes n."""
        return self.graph.num_nodes

    def keep(self, nodes: NDArray[np.int64]) -> HopBatch:
        """Propagate now, keep every hop in memory or on disk for :meth:`blocks`, and return some nodes."""
        self._kept = HopStore(self.source, nodes)
        return self._on_device(self._kept.sample, self.lengths[nodes], self.degrees[nodes])

    def close(self) -> None:
        """Free what was kept."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def batch(self, nodes: NDArray[np.int64]) -> HopBatch:
        """Some nodes as the model sees them."""
        return self._on_device(self.source.sample(nodes), self.lengths[nodes], self.degrees[nodes])

    def corrupted(self, nodes: NDArray[np.int64], permutation: NDArray[np.int64]) -> HopBatch:
        """The same nodes where every node has the features of another: Deep Graph Infomax's negatives."""
        return self._on_device(
            self.source.sample(nodes, permutation), self.lengths[permutation[nodes]], self.degrees[nodes]
        )

    def blocks(self) -> Iterator[HopBatch]:
        """Every node in order, some at a time."""
        with contextlib.nullcontext(self._kept) if self._kept else HopStore(self.source) as store:
            for start, hops in store.blocks(SCORED_AT_ONCE):
                rows = slice(start, start + hops.shape[1])
                yield self._on_device(hops, self.lengths[rows], self.degrees[rows])

    def _projected(self, rows: slice, columns: slice) -> NDArray[np.float32]:
        scaled = scale_rows(self._rows(rows), self.scale[rows])
        release(self.graph.features)
        return np.asarray(scaled @ self.projection[:, columns], dtype=np.float32)

    def _rows(self, rows: slice) -> Features:
        everything = rows.start == 0 and rows.stop >= self.num_nodes
        return self.graph.features if everything else self.graph.features[rows]  # SciPy copies what it slices

    def _on_device(
        self, hops: NDArray[np.float32], lengths: NDArray[np.float32], degrees: NDArray[np.float32]
    ) -> HopBatch:
        return HopBatch.of(*(torch.from_numpy(part).to(self.device) for part in (hops, lengths, degrees)))
