"""The rows that scores are made of, kept up to date while the graph changes, for detectors that score row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.detectors.degem.encoding import NUM_STATISTICS
from degem.detectors.degem.row_scorer import RowScorer, Smoothing
from degem.ops.features import Features
from degem.ops.neighbours import returning, strengths
from degem.propagation.changing import ChangingHops

AT_ONCE = 1 << 12
NONE = np.empty(0, dtype=np.int64)
Array = NDArray[np.float32]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class NewRows:
    """Nodes that are in no graph yet.

    Arguments:
        features: Their features, of shape (k, d₀).
        edges: The weights of their edges to rows of the graph, of shape (k, n).
        among: The weights of the edges among themselves, of shape (k, k).
    """

    features: Features
    edges: sp.csr_array
    among: sp.csr_array


class ScoreRows:
    """All rows that a detector's scores are made of: hops of features, energies, class probabilities.

    Arguments:
        scorer: The detector's way of scoring rows.
        tolerance: What :class:`~degem.propagation.changing.ChangingHops` may leave out; at 0 nothing.
    """

    def __init__(self, scorer: RowScorer, tolerance: float = 0.0) -> None:
        self.scorer, self.tolerance = scorer, tolerance
        self.hops = ChangingHops(scorer.num_hops, scorer.width, tolerance=tolerance)
        self.statistics = ChangingHops(0, NUM_STATISTICS)
        self.energies = ChangingHops(0, len(scorer.smoothed))
        self.smooth = _smoothing(scorer.energy_smoothing, int(scorer.smoothed.sum()), tolerance)
        self.classes = _smoothing(scorer.class_smoothing, scorer.num_classes, tolerance)
        self.degrees = np.empty(0, dtype=np.float32)
        self.returning = np.empty(0, dtype=np.float32)
        self.num_scored = 0

    def update(
        self,
        adjacency: sp.csr_array,
        begun: Places,
        touched: Places,
        features: Callable[[Places], Features],
        degrees: Array | None = None,
    ) -> None:
        """Bring every row up to date.

        Arguments:
            adjacency: The adjacency as it is now.
            begun: The rows whose features are new or have changed.
            touched: The rows whose edges have changed.
            features: Gives the features of some rows.
            degrees: The true degrees, or sums of weights, of nodes whose edges are not all in the adjacency; default:
                those in it.
        """
        self.degrees = strengths(adjacency) if degrees is None else degrees
        begin = np.union1d(begun, touched)
        projected = np.empty((len(begin), self.scorer.width), np.float32)
        statistics = np.empty((len(begin), NUM_STATISTICS), np.float32)
        for rows in _blocks(len(begin)):
            projected[rows], statistics[rows] = self.scorer.project(features(begin[rows]))
        self.statistics.update(adjacency, begin, statistics, touched=NONE)
        root = np.sqrt(_positive(self.degrees[begin]))[:, None]
        moved = self.hops.update(adjacency, begin, np.asarray(projected / root, dtype=np.float32), touched=touched)
        stale = np.unique(
            np.concatenate([begin, self._update_returning(adjacency), *(moved[hop] for hop in self.scorer.hops)])
        )
        energies, chances = self._energies(stale)
        smoothed = np.ascontiguousarray(energies[:, self.scorer.smoothed])
        self.energies.update(adjacency, stale, energies, touched=NONE)
        self.smooth.update(adjacency, stale, smoothed, touched=touched)
        self.classes.update(adjacency, stale, chances, touched=touched)
        self.num_scored = len(stale)

    def smoothed_energies(self, rows: Places | slice = slice(None)) -> Array:
        """The energies of every term, smoothed where a term is."""
        energies = self.energies.values[0, rows].copy()
        isolated = self.degrees[rows][:, None] == 0
        energies[:, self.scorer.smoothed] = np.where(
            isolated, self.smooth.values[0, rows], self.smooth.values[-1, rows]
        )
        return energies

    def chances(self) -> Array | None:
        """The class probabilities of every row; None without classes."""
        if not self.scorer.num_classes:
            return None
        return np.asarray(np.where(self.degrees[:, None] == 0, self.classes.values[0], self.classes.values[-1]))

    def provisional(self, new: NewRows) -> tuple[Array, Array | None, NDArray[np.bool_]]:
        r"""Energies and class probabilities of new nodes from the rows of their neighbours; which nodes have none.

        It costs as much as they have edges. Exact would be to walk anew with them in the graph. Here walks may pass
        them, but rows farther than their neighbours stay as they are: with the new nodes' rows :math:`x` and edges
        :math:`A`, those of their neighbours :math:`y`, which are :math:`v` in the graph, and degrees :math:`d` before,

        .. math:: x^{(\ell)} = D_x^{-1} (A_{xx} x^{(\ell-1)} + A_{xy} y^{(\ell-1)}), \quad
            y^{(\ell)} = D_y^{-1} (d_y v^{(\ell)} + A_{yx} x^{(\ell-1)}).
        """
        edges, among, (count, size) = new.edges, new.among, new.edges.shape
        starts, among_starts = _rows_of_entries(edges), _rows_of_entries(among)
        near, places = np.unique(edges.indices, return_inverse=True)
        before = self.degrees[edges.indices]
        after = before + np.bincount(places, edges.data).astype(np.float32)[places]
        weights = np.bincount(starts, edges.data, count) + np.bincount(among_starts, among.data, count)
        degrees: Array = np.asarray(weights, dtype=np.float32)
        inverse = 1 / _positive(degrees)
        shares, among_shares = edges.data * inverse[starts], among.data * inverse[among_starts]
        to_near = sp.csr_array((shares / after, places, edges.indptr), shape=(count, len(near)))
        from_near = sp.csr_array((edges.data, places, edges.indptr), shape=(count, len(near)))
        mean_among, mean_edges = _weighed(among, among_shares), _weighed(edges, shares)
        among_new = sp.csr_array(sp.hstack([mean_among, to_near @ from_near.T]))
        later = _weighed(edges, shares * before / after)

        projected, statistics = self.scorer.project(new.features)
        last, rows = projected * 0, projected * np.sqrt(inverse)[:, None]
        theirs = _weighed(edges, shares * np.sqrt(_positive(before) / after))
        seen = [rows]
        for hop in range(1, self.scorer.num_hops + 1):
            rows, last = among_new @ np.vstack([rows, last]) + theirs @ self.hops.values[hop - 1, :size], rows
            theirs = later
            if hop in self.scorer.hops:
                seen.append(rows)
        back = np.bincount(starts, shares * edges.data / after, count)
        back += np.bincount(among_starts, among_shares * among.data * inverse[among.indices], count)
        energies, chances = self.scorer.energies(
            np.stack(seen), statistics, degrees, np.asarray(back, dtype=np.float32)
        )

        def smoothed(own: Array, stored: ChangingHops) -> Array:
            for values in stored.values[:-1, :size]:
                mixed = stored.self_weight * own + stored.weight * (mean_among @ own + mean_edges @ values)
                own = np.where(degrees[:, None] == 0, own, mixed)
            return own

        energies[:, self.scorer.smoothed] = smoothed(energies[:, self.scorer.smoothed], self.smooth)
        return energies, None if chances is None else smoothed(chances, self.classes), degrees == 0

    def _update_returning(self, adjacency: sp.csr_array) -> Places:
        """Keep the shares of returning walks that moved, and return whose these are."""
        now = returning(adjacency, np.asarray(1 / _positive(self.degrees), dtype=np.float32))
        self.returning = np.append(self.returning, np.zeros(len(now) - len(self.returning), dtype=np.float32))
        moved = np.flatnonzero(np.abs(now - self.returning) > self.tolerance * now)
        self.returning[moved] = now[moved]
        return moved

    def _energies(self, rows: Places) -> tuple[Array, Array]:
        energies = np.empty((len(rows), len(self.scorer.smoothed)), dtype=np.float32)
        chances = np.empty((len(rows), self.scorer.num_classes), dtype=np.float32)
        used = np.array(self.scorer.hops)[:, None]
        for block in _blocks(len(rows)):
            some = rows[block]
            parts = self.statistics.values[0, some], self.degrees[some], self.returning[some]
            energies[block], of_classes = self.scorer.energies(self.hops.values[used, some], *parts)
            if of_classes is not None:
                chances[block] = of_classes
        return energies, chances


def _smoothing(smoothing: Smoothing, width: int, tolerance: float) -> ChangingHops:
    steps = smoothing.num_steps if smoothing.weight else 0
    return ChangingHops(steps, width, self_weight=1 - smoothing.weight, weight=smoothing.weight, tolerance=tolerance)


def _positive(degrees: Array) -> Array:
    """Degrees to divide by: 1 for isolated nodes."""
    return np.asarray(np.where(degrees > 0, degrees, 1), dtype=np.float32)


def _rows_of_entries(matrix: sp.csr_array) -> Places:
    """The row of each entry of a matrix."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _weighed(matrix: sp.csr_array, weights: NDArray[Any]) -> sp.csr_array:
    """The matrix with other entries in the places of its own."""
    return sp.csr_array((weights, matrix.indices, matrix.indptr), shape=matrix.shape)


def _blocks(length: int) -> list[slice]:
    return [slice(start, start + AT_ONCE) for start in range(0, length, AT_ONCE)]
