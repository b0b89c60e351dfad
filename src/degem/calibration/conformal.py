"""Conformal p-values, by strata of similar degree too, thresholds, and how many calibration nodes a level needs.

The p-values are valid where calibration nodes and in-distribution test nodes are exchangeable. Graphs can break that:
see ``docs/calibration.md``.
"""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.errors import DegemError, quoted

MIN_STRATUM = 20
QUARTILES = (0.25, 0.5, 0.75)


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


def stratified_p_values(
    calibration: ArrayLike,
    calibration_degrees: ArrayLike,
    scores: ArrayLike,
    degrees: ArrayLike,
    *,
    min_stratum: int = MIN_STRATUM,
    by_edges: bool = False,
) -> NDArray[np.float64]:
    """Conformal p-values within strata of similar degree, so that the false-alarm rate holds for hubs and leaves alike.

    Arguments:
        calibration: Scores of held-out in-distribution nodes.
        calibration_degrees: Their degrees.
        scores: Scores to judge; higher = more OOD.
        degrees: Their nodes' degrees.
        min_stratum: The fewest calibration nodes a stratum may have; see :func:`degree_strata`.
        by_edges: Whether nodes weigh 1 / degree; see :func:`~degem.calibration.conformal.degree_weights`.

    Example:
        >>> stratified_p_values([1.0, 5.0], [1, 9], [2.0, 2.0], [1, 9], min_stratum=1)
        array([0.5, 1. ])
    """
    reference, asked = checked_scores(calibration), checked_scores(scores)
    bounds = degree_strata(calibration_degrees, min_stratum)
    reference_stratum, stratum = np.searchsorted(bounds, calibration_degrees), np.searchsorted(bounds, degrees)
    if reference_stratum.shape != reference.shape or stratum.shape != asked.shape:
        raise DegemError("there must be one degree for each score")
    p = np.empty(len(asked))
    for index in range(len(bounds) + 1):
        members = stratum == index
        peers = reference_stratum == index
        weights = {}
        if by_edges:
            weights = {
                "calibration_weights": degree_weights(np.asarray(calibration_degrees)[peers]),
                "weights": degree_weights(np.asarray(degrees)[members]),
            }
        p[members] = conformal_p_values(reference[peers], asked[members], **weights)
    return p


def degree_weights(degrees: ArrayLike) -> NDArray[np.float64]:
    """The weight 1 / degree, where edges arrive in random order: then the well-connected nodes were there first.

    Example:
        >>> degree_weights([0, 1, 4])
        array([1.  , 1.  , 0.25])
    """
    return np.asarray(1 / np.maximum(np.asarray(degrees, dtype=np.float64), 1))


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
