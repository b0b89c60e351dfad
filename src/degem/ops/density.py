"""Gaussian mixtures of one component a class, fitted in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PSEUDO_COUNT = 2.0


@dataclass(frozen=True)
class Mixture:
    r"""Gaussians of one covariance, in the space where that covariance is the identity.

    Arguments:
        mean: The mean :math:`m` of all points, of shape (d,). Without it, points close together would be lost in the
            rounding of where they lie.
        whitening: The map :math:`W` into that space, :math:`u = (z - m)W`, of shape (d, d).
        centres: Their means there, :math:`(\mu_y - m) W`, of shape (C, d).
        log_prior: The log-share :math:`\log\pi_y` of each.
    """

    mean: Array
    whitening: Array
    centres: Array
    log_prior: Array


def fit_mixture(points: Array, labels: NDArray[np.int64] | None = None) -> Mixture:
    r"""The mixture :math:`\sum_y \pi_y\,\mathcal{N}(\mu_y, \Sigma)` of some points.

    :math:`\Sigma` is shared and shrunk (Ledoit & Wolf 2004), and class means lean towards the mean of all by two
    pseudo-points, so that a handful of points a class suffices.

    Arguments:
        points: The points :math:`z`, of shape (n, d).
        labels: The class of each; all one class if None.

    Example:
        >>> fit_mixture(np.random.default_rng(0).standard_normal((50, 2))).centres.shape
        (1, 2)
    """
    from sklearn.covariance import ledoit_wolf  # slow to load, and scoring does without

    count = len(points)
    scale = points.std(axis=0) + 1e-6
    mean = points.mean(axis=0)
    scaled = (points - mean) / scale
    _, member = np.unique(np.zeros(count) if labels is None else labels, return_inverse=True)
    sizes = np.bincount(member).astype(np.float64)
    sums = np.zeros((len(sizes), points.shape[1]))
    np.add.at(sums, member, scaled)
    means = sums / (sizes + PSEUDO_COUNT)[:, None]  # the mean of all is 0
    covariance, _ = ledoit_wolf(scaled - means[member], assume_centered=True)
    covariance += 1e-6 * max(np.trace(covariance) / len(covariance), 1e-12) * np.eye(len(covariance))
    whiten = np.linalg.cholesky(np.linalg.inv(covariance))
    return Mixture(mean, whiten / scale[:, None], means @ whiten, np.log(sizes / count))
