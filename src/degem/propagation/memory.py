"""Propagation in memory: all columns travel together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.propagation.propagator import BLOCK, Columns, KeptHops, Propagator, spans

NOTHING = np.empty((0, 0, 0), dtype=np.float32)


class InMemory(Propagator):
    """A propagator for what fits memory.

    Example:
        >>> pair = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
        >>> columns = Columns.of(np.array([[1.0], [0.0]], dtype=np.float32))
        >>> [block.values.ravel().tolist() for block in InMemory().hops(pair, columns, 2, self_weight=0.5)]
        [[1.0, 0.0], [0.5, 1.0], [1.25, 1.0]]
    """

    def columns_at_once(self, num_nodes: int, width: int) -> int:
        """All of them."""
        return width

    def keep(
        self,
        adjacency: sp.csr_array,
        columns: Columns,
        hops: Sequence[int],
        *,
        sampled: NDArray[np.int64] | None = None,
    ) -> KeptHops:
        """Walk and keep some hops in one array."""
        whole = np.empty((len(hops), adjacency.shape[0], columns.width), dtype=np.float32)
        for _ in self._walk(adjacency, columns, hops[-1], 0.0, 1.0, dict(zip(hops, whole, strict=True))):
            pass
        return _HopsInMemory(whole, np.take(whole, [] if sampled is None else sampled, axis=1, mode="clip"))


class _HopsInMemory(KeptHops):
    def __init__(self, whole: NDArray[np.float32], sample: NDArray[np.float32]) -> None:
        super().__init__(sample)
        self._whole = whole

    def blocks(self, block_rows: int = BLOCK) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Views of the array."""
        for rows in spans(self._whole.shape[1], block_rows):
            yield rows.start, self._whole[:, rows]

    def close(self) -> None:
        """Free the memory."""
        self._whole = NOTHING
