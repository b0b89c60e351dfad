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
        edges: The weights of their edges to these, of shape (k, near).
        among: The weights of the edges among themselves, of shape (k, k).
    """

    features: Features
    near: Places
    edges: sp.csr_array
    among: sp.csr_array


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
        near, before = new.near, self._degrees[new.near]
        degrees = _sums(new.edges) + _sums(new.among)
        inverse: Array = np.reciprocal(positive(degrees))
        back = sp.csr_array(new.edges.T)
        after: Array = before + _sums(back)
        among, there, back = (
            _by_rows(new.among, inverse),
            _by_rows(new.edges, inverse),
            _by_rows(back, np.reciprocal(after)),
        )
        around = sp.csr_array(there @ back)
        returning = around.diagonal() + sp.csr_array(among @ among).diagonal()

        projected, statistics = self.scorer.project(new.features)
        last, rows = projected * 0, projected * np.sqrt(inverse)[:, None]
        theirs, later = (_by_columns(there, each) for each in (np.sqrt(positive(before) / after), before / after))
        seen = [rows]
        for hop in range(1, self.scorer.num_hops + 1):
            rows, last = among @ rows + around @ last + theirs @ self._hops.rows(hop - 1, near), rows
            theirs = later
            if hop in self.scorer.hops:
                seen.append(rows)
        energies, chances = self.scorer.energies(np.stack(seen), statistics, degrees, returning)
        isolated = degrees == 0

        def smoothed(own: Array, smoothing: Smoothing, stored: HopsView) -> Array:
            for step in range(smoothing.num_steps if smoothing.weight else 0):
                mean = among @ own + there @ stored.rows(step, near)
                own = np.where(isolated[:, None], own, (1 - smoothing.weight) * own + smoothing.weight * mean)
            return own

        energies[:, self.scorer.smoothed] = smoothed(energies[:, self.scorer.smoothed], *self._smooth)
        return energies, None if chances is None else smoothed(chances, *self._classes), isolated


def _sums(matrix: sp.csr_array) -> Array:
    """The sum of each row."""
    return np.asarray(matrix.sum(axis=1), dtype=np.float32)


def _by_rows(matrix: sp.csr_array, weights: Array) -> sp.csr_array:
    """The matrix with its rows weighed."""
    weighed = matrix.data * np.repeat(weights, np.diff(matrix.indptr))
    return sp.csr_array((weighed, matrix.indices, matrix.indptr), shape=matrix.shape)


def _by_columns(matrix: sp.csr_array, weights: Array) -> sp.csr_array:
    """The matrix with its columns weighed."""
    weighed = matrix.data * weights[matrix.indices]
    return sp.csr_array((weighed, matrix.indices, matrix.indptr), shape=matrix.shape)
