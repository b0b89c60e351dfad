"""Scores of new nodes before they are in the graph, from the rows of their neighbours as they were at one moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.detectors.degem.row_scorer import Smoothing
from degem.ops.features import Features
from degem.propagation.changing import HopsView
from degem.serve.rows import Array, Places, ScoreRows, positive


@dataclass(frozen=True)
class NewRows:
    """Nodes that are in no graph yet.

    Arguments:
        features: Their features, of shape (k, d₀).
        near: The rows of the graph that they are joined to, each once.
        edges: The weights of the edges among themselves, and behind these to ``near``, of shape (k, k + near).
    """

    features: Features
    near: Places
    edges: sp.csr_array


class ProvisionalRows:
    """What new nodes' rows are made of, as it was when this was made, whatever is updated meanwhile.

    Arguments:
        rows: The rows of the graph.
    """

    def __init__(self, rows: ScoreRows) -> None:
        self.scorer, self._degrees = rows.scorer, rows.degrees
        self._hops = rows.hops.view()
        self._smooth = rows.scorer.energy_smoothing, rows.smooth.view()
        self._classes = rows.scorer.class_smoothing, rows.classes.view()

    def energies(self, new: NewRows) -> tuple[Array, Array | None, NDArray[np.bool_]]:
        r"""Energies and class probabilities of new nodes; which of them are isolated.

        It costs as much as they have edges. Exact would be to walk anew with them in the graph. Here walks may pass
        them, but rows farther than their neighbours stay as they are: with the new nodes' rows :math:`x` and edges
        :math:`A`, those of their neighbours :math:`y`, which are :math:`v` in the graph, and degrees :math:`d` before,

        .. math:: x^{(\ell)} = D_x^{-1} (A_{xx} x^{(\ell-1)} + A_{xy} y^{(\ell-1)}), \quad
            y^{(\ell)} = D_y^{-1} (d_y v^{(\ell)} + A_{yx} x^{(\ell-1)}).
        """
        edges, near, count = new.edges, new.near, new.edges.shape[0]
        starts, weights = _rows_of_entries(edges), edges.data
        degrees = np.bincount(starts, weights, count).astype(np.float32)
        joined = sp.csr_array(edges[:, count:].T)
        before = self._degrees[near]
        after: Array = before + np.bincount(_rows_of_entries(joined), joined.data, len(near)).astype(np.float32)
        inverse = 1 / np.concatenate([positive(degrees), after])
        mean = sp.csr_array((weights * inverse[starts], edges.indices, edges.indptr), shape=edges.shape)
        joined.data *= inverse[count:][_rows_of_entries(joined)]
        returning = np.bincount(starts, mean.data * weights * inverse[edges.indices], count).astype(np.float32)

        projected, statistics = self.scorer.project(new.features)
        x = projected / np.sqrt(positive(degrees))[:, None]
        y = self._hops.rows(0, near) * np.sqrt(positive(before) / after)[:, None]
        kept, seen = (before / after)[:, None], [x]
        for hop in range(1, self.scorer.num_hops + 1):
            x, y = mean @ np.vstack([x, y]), self._hops.rows(hop, near) * kept + joined @ x
            if hop in self.scorer.hops:
                seen.append(x)
        energies, chances = self.scorer.energies(np.stack(seen), statistics, degrees, returning)
        isolated = degrees == 0

        def smoothed(own: Array, smoothing: Smoothing, stored: HopsView) -> Array:
            for step in range(smoothing.num_steps if smoothing.weight else 0):
                around = mean @ np.vstack([own, stored.rows(step, near)])
                own = np.where(isolated[:, None], own, (1 - smoothing.weight) * own + smoothing.weight * around)
            return own

        energies[:, self.scorer.smoothed] = smoothed(energies[:, self.scorer.smoothed], *self._smooth)
        return energies, None if chances is None else smoothed(chances, *self._classes), isolated


def _rows_of_entries(matrix: sp.csr_array) -> Places:
    """The row of each entry of a matrix."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
