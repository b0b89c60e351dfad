"""Hop features of a whole graph: in memory while they fit a budget, else in one temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.mapped import default_budget, release
from degem.ops.propagation import hop_features, propagated_blocks

BLOCK = 1 << 16


class HopStore:
    r"""The hop features :math:`X^{(0)}, …, X^{(L)}`, of shape :math:`(L+1, n, r)`, made when it is made.

    Both homes hold the same bits. The file has no name: it is gone when the store is closed or the process ends, in
    whatever way. It lies in the folder for temporary files, which the environment variable ``TMPDIR`` chooses.

    Arguments:
        adjacency: The adjacency :math:`A`.
        rows_of: Rows ``start`` to ``stop`` of :math:`X^{(0)}`, of shape (stop − start, r); asked for once, in order.
        width: The number of columns :math:`r`.
        num_hops: The number of hops :math:`L`.
        self_weight: The weight :math:`\beta` of the node itself.
        memory_budget: MiB that hop features may take in memory; default: 40 % of what is free.

    Example:
        >>> pair = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
        >>> x = np.array([[1.0], [0.0]], dtype=np.float32)
        >>> with HopStore(pair, lambda start, stop: x[start:stop], 1, 2, self_weight=0.0) as hops:
        ...     hops.rows(np.array([0]))[:, 0, 0], hops.on_disk
        (array([1., 0., 1.], dtype=float32), False)
    """

    def __init__(
        self,
        adjacency: sp.csr_array,
        rows_of: Callable[[int, int], NDArray[np.float32]],
        width: int,
        num_hops: int,
        *,
        self_weight: float,
        memory_budget: float | None = None,
    ) -> None:
        budget = 2**20 * (default_budget() if memory_budget is None else memory_budget)
        self.shape = (num_hops + 1, adjacency.shape[0], width)
        size = 4 * int(np.prod(self.shape, dtype=np.int64))
        self.on_disk = size > budget
        self.hops = _nameless_map(self.shape) if self.on_disk else np.empty(self.shape, dtype=np.float32)
        for start, stop in self._spans(BLOCK):
            self.hops[0, start:stop] = rows_of(start, stop)
            release(self.hops)
        if self.on_disk:
            columns = max(1, min(width, int(budget // (4 * self.shape[1]))))
            for first in range(0, width, columns):
                self._propagate_columns(adjacency, slice(first, first + columns), self_weight)
        else:
            hop_features(adjacency, self.hops[0], num_hops, self_weight=self_weight, out=self.hops)

    def rows(self, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Hop features of some nodes, of shape (L + 1, len(nodes), r)."""
        found: NDArray[np.float32] = np.take(self.hops, nodes, axis=1)
        release(self.hops)
        return found

    def blocks(self, block_rows: int = BLOCK) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Every node's hop features in order: pairs of the first node and an array of shape (L + 1, block, r)."""
        for start, stop in self._spans(block_rows):
            yield start, np.ascontiguousarray(self.hops[:, start:stop])
            release(self.hops)

    def close(self) -> None:
        """Free the memory or the disk."""
        del self.hops

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _propagate_columns(self, adjacency: sp.csr_array, columns: slice, self_weight: float) -> None:
        """Some columns of every hop: one hop in memory at a time, the next one written a block of rows at a time."""
        current = self._load(0, columns)
        for hop in range(1, self.shape[0]):
            for start, block in propagated_blocks(adjacency, current, self_weight=self_weight, block_rows=BLOCK):
                self.hops[hop, start : start + len(block), columns] = block
                release(self.hops)
            if hop + 1 < self.shape[0]:
                self._load(hop, columns, out=current)

    def _load(self, hop: int, columns: slice, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        width = len(range(*columns.indices(self.shape[2])))
        loaded = np.empty((self.shape[1], width), dtype=np.float32) if out is None else out
        for start, stop in self._spans(BLOCK):
            loaded[start:stop] = self.hops[hop, start:stop, columns]
            release(self.hops)
        return loaded

    def _spans(self, block_rows: int) -> Iterator[tuple[int, int]]:
        for start in range(0, self.shape[1], block_rows):
            yield start, min(start + block_rows, self.shape[1])


def _nameless_map(shape: tuple[int, int, int]) -> NDArray[np.float32]:
    """A memory map of a file without a name, which lives as long as the map."""
    with tempfile.TemporaryFile(prefix="degem-hops-") as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)
