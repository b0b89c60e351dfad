"""From scores to decisions that can be defended: conformal p-values, false-alarm rates, false discovery rates.

The p-values are valid where calibration nodes and in-distribution test nodes are exchangeable. Graphs can break that:
see ``docs/calibration.md``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.errors import DegemError

MIN_STRATUM = 20
QUARTILES = (0.25, 0.5, 0.75)


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
    reference, asked = np.sort(_checked(calibration)), _checked(scores)
    at_least = len(reference) - np.searchsorted(reference, asked, side="left")
    return np.asarray((1 + at_least) / (len(reference) + 1), dtype=np.float64)


def stratified_p_values(
    calibration: ArrayLike,
    calibration_degrees: ArrayLike,
    scores: ArrayLike,
    degrees: ArrayLike,
    *,
    min_stratum: int = MIN_STRATUM,
) -> NDArray[np.float64]:
    """Conformal p-values within strata of similar degree, so that the false-alarm rate holds for hubs and leaves alike.

    Arguments:
        calibration: Scores of held-out in-distribution nodes.
        calibration_degrees: Their degrees.
        scores: Scores to judge; higher = more OOD.
        degrees: Their nodes' degrees.
        min_stratum: The fewest calibration nodes a stratum may have; see :func:`degree_strata`.

    Example:
        >>> stratified_p_values([1.0, 5.0], [1, 9], [2.0, 2.0], [1, 9], min_stratum=1)
        array([0.5, 1. ])
    """
    reference, asked = _checked(calibration), _checked(scores)
    bounds = degree_strata(calibration_degrees, min_stratum)
    home, stratum = np.searchsorted(bounds, calibration_degrees), np.searchsorted(bounds, degrees)
    if home.shape != reference.shape or stratum.shape != asked.shape:
        raise DegemError("there must be one degree for each score")
    p = np.empty(len(asked))
    for index in range(len(bounds) + 1):
        members = stratum == index
        p[members] = conformal_p_values(reference[home == index], asked[members])
    return p


def degree_strata(degrees: ArrayLike, min_stratum: int = MIN_STRATUM) -> NDArray[np.float64]:
    """The highest degree of each stratum but the last: quartiles, less those that would leave too few nodes.

    Example:
        >>> degree_strata([1, 1, 1, 2, 2, 3, 8, 9], min_stratum=2)
        array([1., 2.])
    """
    ordered = np.sort(np.asarray(degrees, dtype=np.float64))
    bounds: list[float] = []
    below = 0
    for bound in np.quantile(ordered, QUARTILES, method="inverted_cdf") if len(ordered) else []:
        within = int(np.searchsorted(ordered, bound, side="right"))
        if within - below >= min_stratum and len(ordered) - within >= min_stratum:
            bounds.append(float(bound))
            below = within
    return np.array(bounds)


def smallest_stratum(degrees: ArrayLike) -> int:
    """How many calibration nodes the smallest stratum of :func:`degree_strata` has.

    Example:
        >>> smallest_stratum([1] * 30 + [5] * 50)
        30
    """
    sizes = np.bincount(np.searchsorted(degree_strata(degrees), degrees))
    return int(sizes.min()) if len(sizes) else 0


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
    p = _checked(p_values)
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
    reference = np.sort(_checked(calibration))
    possible = np.arange(1, len(reference) + 2) / (len(reference) + 1)  # p-values, by the number of scores above
    above = int(np.searchsorted(possible, alpha, side="right")) - 1
    return math.inf if above < 0 else float(np.nextafter(reference[len(reference) - 1 - above], math.inf))


def nodes_needed(level: float) -> int:
    """How many calibration nodes a level needs at the least: :math:`1/(n+1) ≤ level`.

    Example:
        >>> nodes_needed(0.05)
        19
    """
    _check_level(level)
    return math.ceil(1 / level - 1e-9) - 1


def _checked(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise DegemError(f"scores and p-values are one number a node, got shape {array.shape}")
    if np.isnan(array).any():
        raise DegemError(f"number {int(np.isnan(array).argmax())} is NaN: no decision can rest on it")
    return array


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise DegemError(f"a level must lie strictly between 0 and 1, got {level}")
