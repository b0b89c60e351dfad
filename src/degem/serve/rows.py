"""The rows that scores are made of, kept up to date while the graph changes, for detectors that score row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
        neighbours: Rows of the graph that they are joined to, of shape (m,).
        edges: The weights of the edges to these, of shape (k, m).
        among: The weights of the edges among themselves, of shape (k, k).
    """

    features: Features
    neighbours: Places
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
        moved = self.hops.update(adjacency, begin, projected / root, touched=touched)
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
            y^{(\ell)} = D_y^{-1} (d_y v^{(\ell)} + A_{yx} x^{(\ell-1)})
        """
        near, edges, among = new.neighbours, new.edges, new.among
        degrees = np.asarray(edges.sum(axis=1) + among.sum(axis=1), dtype=np.float32)
        before = self.degrees[near][:, None]
        after = before + edges.sum(axis=0, dtype=np.float32)[:, None]
        divisors = _positive(degrees)[:, None]
        projected, statistics = self.scorer.project(new.features)
        rows = projected / np.sqrt(divisors)
        theirs = self.hops.values[0, near] * np.sqrt(_positive(before) / after)
        seen = [rows]
        for hop in range(1, self.scorer.num_hops + 1):
            longer = (among @ rows + edges @ theirs) / divisors
            theirs = (before * self.hops.values[hop, near] + edges.T @ rows) / after
            rows = longer
            if hop in self.scorer.hops:
                seen.append(rows)
        back = (among.power(2) @ (1 / divisors) + edges.power(2) @ (1 / after)) / divisors
        energies, chances = self.scorer.energies(np.stack(seen), statistics, degrees, back[:, 0])

        def smoothed(own: Array, stored: ChangingHops) -> Array:
            for values in stored.values[:-1]:
                mean = (among @ own + edges @ values[near]) / divisors
                own = np.where(degrees[:, None] == 0, own, stored.self_weight * own + stored.weight * mean)
            return own

        energies[:, self.scorer.smoothed] = smoothed(energies[:, self.scorer.smoothed], self.smooth)
        return energies, None if chances is None else smoothed(chances, self.classes), degrees == 0

    def _update_returning(self, adjacency: sp.csr_array) -> Places:
        """Keep the shares of returning walks that moved, and return whose these are."""
        now = returning(adjacency, 1 / _positive(self.degrees))
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
    return np.where(degrees > 0, degrees, np.float32(1))


def _blocks(length: int) -> list[slice]:
    return [slice(start, start + AT_ONCE) for start in range(0, length, AT_ONCE)]
