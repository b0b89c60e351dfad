"""Conformal p-values, thresholds, and how many calibration nodes a level needs.

The p-values are valid where calibration nodes and in-distribution test nodes are exchangeable. Graphs can break that:
see ``docs/calibration.md``.
"""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.errors import DegemError, quoted


def conformal_p_values(
    calibration: ArrayLike,
    scores: ArrayLike,
    *,
    calibration_weights: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> NDArray[np.float64]:
    r"""Split-conformal p-values :math:`p_i = (w_i + \sum_{j : c_j \ge s_i} w_j) / (w_i + \sum_j w_j)`.

    With equal weights :math:`p_i = (1 + \#\{j : c_j \ge s_i\}) / (n + 1)`, and under exchangeability
    :math:`P(p_i \le \alpha) \le \alpha` for in-distribution nodes (Bates et al., *Testing for outliers with conformal
    p-values*, 2023). Weights of 1 / degree are for graphs whose edges arrive in random order, so that well-connected
    nodes were there first (Zargarbashi & Bojchevski, *Conformal inductive graph neural networks*, ICLR 2024).

    Arguments:
        calibration: Scores :math:`c_1 … c_n` of held-out in-distribution nodes.
        scores: Scores :math:`s_i` to judge; higher = more OOD.
        calibration_weights: The weights :math:`w_j`; default: all equal.
        weights: The weights :math:`w_i`; default: all 1.

    Example:
        >>> conformal_p_values([1.0, 2.0, 3.0], [0.0, 2.5, 9.0])
        array([1.  , 0.5 , 0.25])
    """
    reference, asked = checked_scores(calibration), checked_scores(scores)
    mass = np.ones(len(reference)) if calibration_weights is None else checked_scores(calibration_weights)
    own = np.ones(len(asked)) if weights is None else checked_scores(weights)
    if mass.shape != reference.shape or own.shape != asked.shape:
        raise DegemError("there must be one weight for each score")
    order = np.argsort(reference)
    above = np.concatenate([np.cumsum(mass[order][::-1])[::-1], [0.0]])  # from each score on, and beyond the last
    at_least = above[np.searchsorted(reference[order], asked, side="left")]
    return np.asarray((own + at_least) / (own + above[0]), dtype=np.float64)


def threshold(calibration: ArrayLike, alpha: float) -> float:
    r"""The smallest score whose conformal p-value is at most ``alpha``; infinity where the set is too small.

    Example:
        >>> threshold([1.0, 2.0, 3.0], 0.25)
        3.0000000000000004
    """
    check_level(alpha)
    reference = np.sort(checked_scores(calibration))
    possible = np.arange(1, len(reference) + 2) / (len(reference) + 1)  # p-values, by the number of scores above
    above = int(np.searchsorted(possible, alpha, side="right")) - 1
    return math.inf if above < 0 else float(np.nextafter(reference[len(reference) - 1 - above], math.inf))


def nodes_needed(level: float) -> int:
    """How many calibration nodes a level needs at the least: :math:`1/(n+1) ≤ level`.

    Example:
        >>> nodes_needed(0.05)
        19
    """
    check_level(level)
    return math.ceil(1 / level - 1e-9) - 1


def checked_scores(values: ArrayLike) -> NDArray[np.float64]:
    """One number a node, none of them NaN, or an error."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError):
        raise DegemError(f"scores and p-values are numbers, got {quoted(values)}") from None
    if array.ndim != 1:
        raise DegemError(f"scores and p-values are one number a node, got shape {array.shape}")
    if np.isnan(array).any():
        raise DegemError(f"number {int(np.isnan(array).argmax())} is NaN: no decision can rest on it")
    return array


def check_level(level: float) -> None:
    """A level lies strictly between 0 and 1, or an error."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise DegemError(f"a level must lie strictly between 0 and 1, got {quoted(level)}")
