"""Propagation within a memory budget: a few columns travel at a time, and hops are kept in temporary files."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.mapped import release
from degem.propagation.propagator import BLOCK, Columns, KeptHops, Propagator, spans
from degem.training import OnProgress, silent

LINE = 16  # numbers that the processor takes from memory at once


class OutOfCore(Propagator):
    """A propagator that keeps two arrays of columns in memory, and the rest on disk.

    Arguments:
        budget_bytes: What the two arrays may take.
        on_progress: Told after each hop.

    Example:
        >>> pair = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
        >>> columns = Columns.of(np.eye(2, dtype=np.float32))
        >>> with OutOfCore(16).keep(pair, columns, (0, 2, 3)) as kept:
        ...     [block[:, 0, 0] for _, block in kept.blocks(1)]
        [array([1., 1., 0.], dtype=float32), array([0., 0., 1.], dtype=float32)]
    """

    def __init__(self, budget_bytes: float, on_progress: OnProgress = silent) -> None:
        super().__init__(on_progress)
        self.budget_bytes = budget_bytes

    def columns_at_once(self, num_nodes: int, width: int) -> int:
        """As many as fit twice into the budget: parts of one size, of whole lines of memory where they fit."""
        most = max(1, min(width, int(self.budget_bytes // (8 * num_nodes))))
        even = math.ceil(width / math.ceil(width / most))
        whole_lines = LINE * math.ceil(even / LINE)
        return whole_lines if whole_lines <= most else even

    def keep(
        self,
        adjacency: sp.csr_array,
        columns: Columns,
        hops: Sequence[int],
        *,
        sampled: NDArray[np.int64] | None = None,
    ) -> KeptHops:
        """Walk and keep some hops on disk, as they are made."""
        num_nodes = int(adjacency.shape[0])
        nodes = np.empty(0, dtype=np.int64) if sampled is None else sampled
        sample = np.empty((len(hops), len(nodes), columns.width), dtype=np.float32)
        strips: list[tuple[slice, np.memmap]] = []
        for block in self.hops(adjacency, columns, hops[-1]):
            if block.hop in hops:
                place = hops.index(block.hop)
                if place == 0:
                    strips.append((block.columns, _on_disk((len(hops), *block.values.shape))))
                strips[-1][1][place] = block.values
                release(strips[-1][1])
                sample[place, :, block.columns] = block.values[nodes]
        return _HopsOnDisk(strips, (len(hops), num_nodes, columns.width), sample)


def _on_disk(shape: tuple[int, ...]) -> np.memmap:
    with tempfile.TemporaryFile(prefix="degem-hops-") as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)


class _HopsOnDisk(KeptHops):
    """Columns that travelled together have a file of their own, of shape (hops, n, columns), which has no name."""

    def __init__(
        self, strips: list[tuple[slice, np.memmap]], shape: tuple[int, int, int], sample: NDArray[np.float32]
    ) -> None:
        super().__init__(sample)
        self._strips, self._shape = strips, shape

    def blocks(self, block_rows: int = BLOCK) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Copies of what is in the files, which are let go of again."""
        hops, num_nodes, width = self._shape
        for rows in spans(num_nodes, block_rows):
            block = np.empty((hops, rows.stop - rows.start, width), dtype=np.float32)
            for columns, values in self._strips:
                block[:, :, columns] = values[:, rows]
                release(values)
            yield rows.start, block

    def close(self) -> None:
        """Give the disk back."""
        self._strips = []
