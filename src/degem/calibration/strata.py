"""Strata of similar degree, so that a false-alarm rate holds for hubs and leaves alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.calibration.conformal import checked_scores, conformal_p_values
from degem.errors import DegemError

MIN_STRATUM = 20
QUARTILES = (0.25, 0.5, 0.75)


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
        by_edges: Whether nodes weigh 1 / degree; see :func:`~degem.calibration.strata.degree_weights`.

    Example:
        >>> stratified_p_values([1.0, 5.0], [1, 9], [2.0, 2.0], [1, 9], min_stratum=1)
        array([0.5, 1. ])
    """
    reference, asked = checked_scores(calibration), checked_scores(scores)
    bounds = degree_strata(calibration_degrees, min_stratum)
    home, stratum = np.searchsorted(bounds, calibration_degrees), np.searchsorted(bounds, degrees)
    if home.shape != reference.shape or stratum.shape != asked.shape:
        raise DegemError("there must be one degree for each score")
    p = np.empty(len(asked))
    for index in range(len(bounds) + 1):
        members = stratum == index
        peers = home == index
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
