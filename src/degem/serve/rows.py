"""The rows that scores are made of, kept up to date while the graph changes, for detectors that score row by row."""

from __future__ import annotations

from collections.abc import Callable

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
        root = np.sqrt(positive(self.degrees[begin]))[:, None]
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

    def _update_returning(self, adjacency: sp.csr_array) -> Places:
        """Keep the shares of returning walks that moved, and return whose these are."""
        now = returning(adjacency, np.asarray(1 / positive(self.degrees), dtype=np.float32))
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


def positive(degrees: Array) -> Array:
    """Degrees to divide by: 1 for isolated nodes."""
    return np.asarray(np.where(degrees > 0, degrees, 1), dtype=np.float32)


def _blocks(length: int) -> list[slice]:
    return [slice(start, start + AT_ONCE) for start in range(0, length, AT_ONCE)]
