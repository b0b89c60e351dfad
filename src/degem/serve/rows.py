"""The rows that scores are made of, kept up to date while the graph changes, for detectors that score row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.detectors.degem.encoding import NUM_STATISTICS
from degem.detectors.degem.row_scorer import RowScorer, Smoothing
from degem.ops.features import Features
from degem.propagation.changing import ChangingHops

AT_ONCE = 1 << 12
NONE = np.empty(0, dtype=np.int64)
Array = NDArray[np.float32]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class NewRow:
    """What a new node is before the graph around it is brought up to date.

    Arguments:
        hops: Its rows of hops 0 … L, of shape (L + 1, r).
        degree: The number of its neighbours.
        energies: Its energies at each step of smoothing, of shape (steps + 1, smoothed terms).
        chances: Its class probabilities before smoothing, of shape (C,).
        all_energies: All its energies, smoothed where a term is.
        smooth_chances: Its class probabilities.
    """

    hops: Array
    degree: int
    energies: Array
    chances: Array
    all_energies: Array
    smooth_chances: Array


class ScoreRows:
    """All rows that a detector's scores are made of: hops of features, energies, class probabilities.

    Arguments:
        scorer: The detector's way of scoring rows.
        tolerance: What :class:`~degem.propagation.changing.ChangingHops` may leave out; at 0 nothing.
    """

    def __init__(self, scorer: RowScorer, tolerance: float = 0.0) -> None:
        self.scorer = scorer
        self.hops = ChangingHops(scorer.num_hops, scorer.width, tolerance=tolerance)
        self.returning = ChangingHops(1, 1, tolerance=tolerance)
        self.statistics = ChangingHops(0, NUM_STATISTICS)
        self.energies = ChangingHops(0, len(scorer.smoothed))
        self.smooth = _smoothing(scorer.energy_smoothing, int(scorer.smoothed.sum()), tolerance)
        self.classes = _smoothing(scorer.class_smoothing, scorer.num_classes, tolerance)
        self.degrees = np.empty(0, dtype=np.float32)
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
            degrees: The true degrees of nodes whose edges are not all in the adjacency; default: those in it.
        """
        self.degrees = np.diff(adjacency.indptr).astype(np.float32) if degrees is None else degrees
        begin = np.union1d(begun, touched)
        width = self.scorer.width
        projected = np.empty((len(begin), width), np.float32)
        statistics = np.empty((len(begin), NUM_STATISTICS), np.float32)
        for rows in _blocks(len(begin)):
            projected[rows], statistics[rows] = self.scorer.project(features(begin[rows]))
        inverse = np.asarray(1 / np.maximum(self.degrees[begin], 1)[:, None], dtype=np.float32)
        self.statistics.update(adjacency, begin, statistics, touched=NONE)
        moved = self.hops.update(adjacency, begin, projected * np.sqrt(inverse), touched=touched)
        returning = self.returning.update(adjacency, begin, inverse, touched=touched)
        stale = np.unique(np.concatenate([begin, returning[1], *(moved[hop] for hop in self.scorer.hops)]))
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

    def provisional(self, features: Features, neighbours: Places, pending: Sequence[NewRow] = ()) -> NewRow:
        r"""A new node's rows from those of its neighbours, at the cost of its degree.

        Exact would be to walk anew with the node in the graph. Here walks may pass it, but rows farther than its
        neighbours stay as they are. With the neighbours' degrees :math:`d_u` before the node came, of which it has
        :math:`k`, and :math:`\tilde v_u` theirs with the node among their neighbours,

        .. math:: v^{(\ell)} = \tfrac1k \sum_u \tilde v_u^{(\ell-1)}, \quad
            \tilde v_u^{(\ell)} = \frac{d_u v_u^{(\ell)} + v^{(\ell-1)}}{d_u + 1}

        Arguments:
            features: The node's features, one row.
            neighbours: The rows of its neighbours.
            pending: Neighbours that are new themselves.
        """
        degrees = np.array([*self.degrees[neighbours], *(near.degree for near in pending)], dtype=np.float32)
        hops = _with_pending(self.hops.values[:, neighbours], [near.hops for near in pending])
        steps = _with_pending(self.smooth.values[:, neighbours], [near.energies for near in pending])
        classes = _with_pending(self.classes.values[:1, neighbours], [near.chances[None] for near in pending])[0]
        count = len(degrees)
        projected, statistics = self.scorer.project(features)
        rows = np.zeros((len(hops), self.scorer.width), dtype=np.float32)
        rows[0] = projected[0] / np.sqrt(max(count, 1))
        if count:
            before, after = degrees[:, None], degrees[:, None] + 1
            theirs = hops[0] * np.sqrt(np.maximum(before, 1) / after)
            for hop in range(1, len(rows)):
                rows[hop] = theirs.mean(axis=0)
                theirs = (before * hops[hop] + rows[hop - 1]) / after
        returning = np.array([(1 / (degrees + 1)).mean() if count else 0], dtype=np.float32)
        degree = np.array([count], dtype=np.float32)
        energies, chances = self.scorer.energies(rows[list(self.scorer.hops)][:, None], statistics, degree, returning)
        smooth = np.empty((len(steps), int(self.scorer.smoothed.sum())), dtype=np.float32)
        smooth[0] = energies[0, self.scorer.smoothed]
        for step in range(1, len(steps)):
            smooth[step] = _mixed(smooth[step - 1], steps[step - 1], self.scorer.energy_smoothing.weight)
        energies[0, self.scorer.smoothed] = smooth[-1]
        own_chances = np.empty(0, np.float32) if chances is None else chances[0]
        mixed = _mixed(own_chances, classes, self.scorer.class_smoothing.weight)
        return NewRow(rows, count, smooth, own_chances, energies[0], mixed)

    def _energies(self, rows: Places) -> tuple[Array, Array]:
        energies = np.empty((len(rows), len(self.scorer.smoothed)), dtype=np.float32)
        chances = np.empty((len(rows), self.scorer.num_classes), dtype=np.float32)
        used = np.array(self.scorer.hops)[:, None]
        for block in _blocks(len(rows)):
            some = rows[block]
            parts = self.statistics.values[0, some], self.degrees[some], self.returning.values[1, some, 0]
            energies[block], of_classes = self.scorer.energies(self.hops.values[used, some], *parts)
            if of_classes is not None:
                chances[block] = of_classes
        return energies, chances


def _smoothing(smoothing: Smoothing, width: int, tolerance: float) -> ChangingHops:
    steps = smoothing.num_steps if smoothing.weight else 0
    return ChangingHops(steps, width, self_weight=1 - smoothing.weight, weight=smoothing.weight, tolerance=tolerance)


def _with_pending(stored: Array, pending: list[Array]) -> Array:
    """Rows of shape (hops, k, columns), those of new nodes behind the stored ones."""
    return np.concatenate([stored, *(rows[:, None] for rows in pending)], axis=1)


def _mixed(own: Array, neighbours: Array, weight: float) -> Array:
    return own if len(neighbours) == 0 else (1 - weight) * own + weight * neighbours.mean(axis=0)


def _blocks(length: int) -> list[slice]:
    return [slice(start, start + AT_ONCE) for start in range(0, length, AT_ONCE)]
