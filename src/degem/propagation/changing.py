"""Hops of columns over a graph that changes, kept up to date row by row."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.neighbours import average

SPARE = 1.25  # arrays that are full grow by a fourth, so that growing costs little for each node


class ChangingHops:
    r"""The hops :math:`v^{(\ell)} = \beta v^{(\ell-1)} + w\,D^{-1} A v^{(\ell-1)}` of a graph that changes.

    A row is computed anew where its edges, or a row it is made of, have changed. A change of at most :math:`\epsilon`
    times the row's length is neither kept nor handed on. So every row stays within that of what its neighbours' rows
    give, and as averaging does not lengthen an error, hop :math:`\ell` is off by at most

    .. math:: \epsilon \sum_{k=0}^{\ell} P^{\ell-k} \|v^{(k)}\|, \quad P = \beta I + w D^{-1} A,

    however many changes there were: :math:`(\ell + 1)\,\epsilon` times the mean length of the rows around.

    Arguments:
        num_hops: The number of hops :math:`L`.
        width: The number of columns.
        self_weight: The weight :math:`\beta` of the node itself.
        weight: The weight :math:`w` of the mean of its neighbours.
        tolerance: The tolerance :math:`\epsilon`; at 0 rows are those of a walk over the whole graph.

    Example:
        >>> pair = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
        >>> hops = ChangingHops(1, 1)
        >>> both = np.arange(2)
        >>> _ = hops.update(pair, both, np.array([[1.0], [3.0]], dtype=np.float32), touched=both)
        >>> [rows.tolist() for rows in hops.update(pair, both[:1], np.array([[2.0]], np.float32), touched=both[:0])]
        [[0], [1]]
        >>> hops.values[1].ravel()
        array([3., 2.], dtype=float32)
    """

    def __init__(
        self, num_hops: int, width: int, *, self_weight: float = 0.0, weight: float = 1.0, tolerance: float = 0.0
    ) -> None:
        self.self_weight, self.weight, self.tolerance = self_weight, weight, tolerance
        self.num_computed = 0
        self._num_nodes = 0
        self._buffer = np.zeros((num_hops + 1, 0, width), dtype=np.float32)

    @property
    def values(self) -> NDArray[np.float32]:
        """The rows of every hop, of shape (hops + 1, n, columns)."""
        return self._buffer[:, : self._num_nodes]

    def update(
        self,
        adjacency: sp.csr_array,
        rows: NDArray[np.int64],
        start: NDArray[np.float32],
        *,
        touched: NDArray[np.int64],
    ) -> list[NDArray[np.int64]]:
        """Bring every hop up to date.

        Arguments:
            adjacency: The adjacency as it is now; new nodes are its last ones.
            rows: The nodes whose values at hop 0 may have changed.
            start: Their values.
            touched: The nodes whose edges have changed.

        Returns:
            The rows that changed, for each hop.
        """
        self._grow(int(adjacency.shape[0]))
        changed = [self._keep(0, rows, start)]
        for hop in range(1, len(self._buffer)):
            near = np.zeros(self._num_nodes, dtype=np.bool_)
            near[touched] = True
            near[adjacency[changed[-1]].indices] = True
            if self.self_weight:
                near[changed[-1]] = True
            places = np.flatnonzero(near)
            before = self._buffer[hop - 1]
            now = average(adjacency, before, self_weight=self.self_weight, weight=self.weight, rows=places)
            changed.append(self._keep(hop, places, now))
        return changed

    def _keep(self, hop: int, rows: NDArray[np.int64], now: NDArray[np.float32]) -> NDArray[np.int64]:
        """Keep the rows that moved, and return which these are."""
        self.num_computed += len(rows)
        far = np.linalg.norm(now - self._buffer[hop, rows], axis=1)
        moved = (far > self.tolerance * np.linalg.norm(now, axis=1)) | ~np.isfinite(far)  # what overflows has moved
        self._buffer[hop, rows[moved]] = now[moved]
        return np.asarray(rows[moved])

    def _grow(self, num_nodes: int) -> None:
        if num_nodes > self._buffer.shape[1]:
            size = num_nodes if self._num_nodes == 0 else int(SPARE * num_nodes)
            buffer = np.zeros((len(self._buffer), size, self._buffer.shape[2]), dtype=np.float32)
            buffer[:, : self._num_nodes] = self.values
            self._buffer = buffer
        self._num_nodes = num_nodes
