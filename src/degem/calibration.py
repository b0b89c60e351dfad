"""From scores to decisions that can be defended: conformal p-values, false-alarm rates, false discovery rates.

The p-values are valid where calibration nodes and in-distribution test nodes are exchangeable. Graphs can break that:
see ``docs/calibration.md``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.errors import DegemError


def conformal_p_values(calibration: ArrayLike, scores: ArrayLike) -> NDArray[np.float64]:
    r"""Split-conformal p-values :math:`p_i = (1 + \#\{j : c_j \ge s_i\}) / (n + 1)`.

    Under exchangeability :math:`P(p_i \le \alpha) \le \alpha` for in-distribution nodes
    (Bates et al., *Testing for outliers with conformal p-values*, 2023).

    Arguments:
        calibration: Scores :math:`c_1 … c_n` of held-out in-distribution nodes.
        scores: Scores :math:`s_i` to judge; higher = more OOD.

    Example:
        >>> conformal_p_values([1.0, 2.0, 3.0], [0.0, 2.5, 9.0])
        array([1.  , 0.5 , 0.25])
    """
    reference = np.sort(np.asarray(calibration, dtype=np.float64))
    asked = np.asarray(scores, dtype=np.float64)
    if np.isnan(reference).any() or np.isnan(asked).any():
        raise DegemError("scores hold NaN: no p-value can be given")
    at_least = len(reference) - np.searchsorted(reference, asked, side="left")
    return np.asarray((1 + at_least) / (len(reference) + 1), dtype=np.float64)


def stratified_p_values(
    calibration: ArrayLike,
    calibration_degrees: ArrayLike,
    scores: ArrayLike,
    degrees: ArrayLike,
    *,
    num_strata: int = 4,
    min_stratum: int = 20,
) -> NDArray[np.float64]:
    """Conformal p-values within strata of similar degree, so that the false-alarm rate holds for hubs and leaves alike.

    Strata are quantiles of the calibration nodes' degrees; there are as many, up to ``num_strata``, as leave
    ``min_stratum`` calibration nodes in each.

    Example:
        >>> stratified_p_values([1.0, 5.0], [1, 9], [2.0, 2.0], [1, 9], num_strata=2, min_stratum=1)
        array([0.5, 1. ])
    """
    reference, reference_degrees = np.asarray(calibration, np.float64), np.asarray(calibration_degrees)
    asked, asked_degrees = np.asarray(scores, np.float64), np.asarray(degrees)
    count = max(1, min(num_strata, len(reference) // max(min_stratum, 1)))
    edges = np.unique(np.quantile(reference_degrees, np.arange(1, count) / count)) if count > 1 else np.empty(0)
    home, stratum = np.searchsorted(edges, reference_degrees), np.searchsorted(edges, asked_degrees)
    p = np.empty(len(asked))
    for index in range(len(edges) + 1):
        members = stratum == index
        p[members] = conformal_p_values(reference[home == index], asked[members])
    return p


def benjamini_hochberg(p_values: ArrayLike, level: float) -> NDArray[np.bool_]:
    r"""Which hypotheses to reject so that the expected share of false ones among them is at most ``level``.

    Rejects the :math:`k` smallest p-values, :math:`k = \max\{i : p_{(i)} \le i\,q/n\}` (Benjamini & Hochberg 1995).

    Arguments:
        p_values: One p-value a node.
        level: The false discovery rate :math:`q`.

    Example:
        >>> benjamini_hochberg([0.01, 0.02, 0.9], 0.05)
        array([ True,  True, False])
    """
    p = np.asarray(p_values, dtype=np.float64)
    _check_level(level)
    if len(p) == 0:
        return np.empty(0, dtype=np.bool_)
    ordered = np.sort(p)
    passing = np.flatnonzero(ordered <= level * np.arange(1, len(p) + 1) / len(p))
    cut = ordered[passing[-1]] if len(passing) else -1.0
    return np.asarray(p <= cut, dtype=np.bool_)


def threshold(calibration: ArrayLike, alpha: float) -> float:
    r"""The smallest score whose conformal p-value is at most ``alpha``; infinity where the set is too small.

    Example:
        >>> threshold([1.0, 2.0, 3.0], 0.25)
        3.0000000000000004
    """
    _check_level(alpha)
    reference = np.sort(np.asarray(calibration, dtype=np.float64))
    allowed = math.floor(alpha * (len(reference) + 1) + 1e-12) - 1
    if allowed < 0:
        return math.inf
    if allowed >= len(reference):
        return -math.inf
    return float(np.nextafter(reference[len(reference) - 1 - allowed], math.inf))


def nodes_needed(level: float) -> int:
    """How many calibration nodes a level needs at the least: :math:`1/(n+1) ≤ level`.

    Example:
        >>> nodes_needed(0.05)
        19
    """
    _check_level(level)
    return math.ceil(1 / level - 1e-9) - 1


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise DegemError(f"a level must lie strictly between 0 and 1, got {level}")
