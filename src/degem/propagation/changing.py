"""Hops of columns over a graph that changes, kept up to date row by row."""

from __future__ import annotations

from dataclasses import dataclass

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
        self._last: _Overwritten | None = None  # None until somebody wants to look back
        self._buffer = np.zeros((num_hops + 1, 0, width), dtype=np.float32)

    @property
    def values(self) -> NDArray[np.float32]:
        """The rows of every hop, of shape (hops + 1, n, columns)."""
        return self._buffer[:, : self._num_nodes]

    def view(self) -> HopsView:
        """The hops as they are now, for other threads, while this one goes on with :meth:`update`."""
        self._last = self._last or _Overwritten(-1, np.empty(0, np.int64), np.empty(0, np.float32))
        return HopsView(self, self._last)

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
            rows: The nodes whose values at hop 0 may have changed, in their order.
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
        kept = np.asarray(rows[moved])
        if self._last is not None and len(kept):
            self._last.then = _Overwritten(hop, kept, self._buffer[hop, kept])  # first: whoever reads looks here last
            self._last = self._last.then
        self._buffer[hop, kept] = now[moved]
        return kept

    def _grow(self, num_nodes: int) -> None:
        if num_nodes > self._buffer.shape[1]:
            size = num_nodes if self._num_nodes == 0 else int(SPARE * num_nodes)
            buffer = np.zeros((len(self._buffer), size, self._buffer.shape[2]), dtype=np.float32)
            buffer[:, : self._num_nodes] = self.values
            self._buffer = buffer
        self._num_nodes = num_nodes


@dataclass
class _Overwritten:
    """Rows of a hop as they were before they were overwritten, and what was overwritten after them."""

    hop: int
    rows: NDArray[np.int64]
    values: NDArray[np.float32]
    then: _Overwritten | None = None


class HopsView:
    """Hops as they were when this was made. Reading neither waits for an update nor sees a part of one.

    It holds what is overwritten from then on, and lets go of it when it goes itself.

    Arguments:
        hops: The hops.
        last: What was overwritten last when this was made.

    Example:
        >>> hops, one = ChangingHops(0, 1), np.arange(1)
        >>> lone = sp.csr_array((1, 1), dtype=np.float32)
        >>> _ = hops.update(lone, one, np.array([[1.0]], np.float32), touched=one)
        >>> before = hops.view()
        >>> _ = hops.update(lone, one, np.array([[2.0]], np.float32), touched=one)
        >>> before.rows(0, one), hops.view().rows(0, one)
        (array([[1.]], dtype=float32), array([[2.]], dtype=float32))
    """

    def __init__(self, hops: ChangingHops, last: _Overwritten) -> None:
        self._hops, self._last = hops, last

    def rows(self, hop: int, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """Some rows of a hop, of shape (places, columns)."""
        found: NDArray[np.float32] = self._hops.values[hop].take(places, axis=0)
        changes, change = [], self._last.then  # after the rows are read: what they were is there before they change
        while change is not None:
            changes += [change] if change.hop == hop else []
            change = change.then
        for change in reversed(changes):  # what was overwritten first has the last word
            at = np.searchsorted(change.rows, places).clip(max=len(change.rows) - 1)
            here = change.rows[at] == places
            found[here] = change.values[at[here]]
        return found
