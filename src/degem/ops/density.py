"""Gaussian mixtures, of one component a class or of kernels: fitted in closed form, judged by leaving points out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PSEUDO_COUNT = 2.0
MIN_LEVERAGE = 0.05
NUM_KERNELS, MIN_BANDWIDTH = 64, 0.1


@dataclass(frozen=True)
class Mixture:
    r"""Gaussians of one covariance, in the space where that covariance is the identity.

    Arguments:
        middle: The mean :math:`m` of all points, of shape (d,). Without it, points close together would be lost in the
            rounding of where they lie.
        whitening: The map :math:`W` into that space, :math:`u = (z - m)W`, of shape (d, d).
        centres: Their means there, :math:`(\mu_y - m) W`, of shape (C, d).
        log_prior: The log-share :math:`\log\pi_y` of each.
        left_out: The energy of each fitted point under the mixture fitted without it.
    """

    middle: Array
    whitening: Array
    centres: Array
    log_prior: Array
    left_out: Array


def fit_mixture(points: Array, labels: NDArray[np.int64] | None = None) -> Mixture:
    r"""The mixture :math:`\sum_y \pi_y\,\mathcal{N}(\mu_y, \Sigma)` of some points.

    :math:`\Sigma` is shared and shrunk (Ledoit & Wolf 2004), and class means lean towards the mean of all by two
    pseudo-points, so that a handful of points a class suffices. Leaving a point of a class with :math:`m` points out
    turns its squared distance :math:`q` to the class mean into :math:`q (m/(m-1))^2 / (1 - (1-\delta) q\,m/(m-1)/n)`,
    :math:`\delta` the shrinkage held fixed.

    Arguments:
        points: The points :math:`z`, of shape (n, d).
        labels: The class of each; all one class if None.

    Example:
        >>> mixture = fit_mixture(np.random.default_rng(0).standard_normal((50, 2)))
        >>> mixture.centres.shape, mixture.left_out.shape
        ((1, 2), (50,))
    """
    from sklearn.covariance import ledoit_wolf  # slow to load, and scoring does without

    count = len(points)
    scale = points.std(axis=0) + 1e-6
    middle = points.mean(axis=0)
    scaled = (points - middle) / scale
    _, member = np.unique(np.zeros(count) if labels is None else labels, return_inverse=True)
    sizes = np.bincount(member).astype(np.float64)
    sums = np.zeros((len(sizes), points.shape[1]))
    np.add.at(sums, member, scaled)
    means = sums / (sizes + PSEUDO_COUNT)[:, None]  # the mean of all is 0
    covariance, shrinkage = ledoit_wolf(scaled - means[member], assume_centered=True)
    covariance += 1e-6 * max(np.trace(covariance) / len(covariance), 1e-12) * np.eye(len(covariance))
    whiten = np.linalg.cholesky(np.linalg.inv(covariance))
    centres, log_prior = means @ whiten, np.log(sizes / count)
    distances = squared_distances(scaled @ whiten, centres)
    own = np.arange(count), member
    factor = sizes[member] / np.maximum(sizes[member] - 1, 0.5)
    leverage = np.maximum(1 - (1 - shrinkage) * distances[own] * factor / count, MIN_LEVERAGE)
    distances[own] *= factor**2 / leverage
    return Mixture(middle, whiten / scale[:, None], centres, log_prior, mixture_energy(distances, log_prior))


def fit_kernels(values: Array) -> Mixture:
    r"""The kernel density :math:`\frac1K \sum_k \mathcal{N}(c_k, h^2)` of numbers, :math:`c_k` their quantiles.

    Numbers can fall into groups far apart, and what lies between them is then not typical: one Gaussian would call it
    so. The bandwidth is twice Silverman's (1986, eq. 3.31), :math:`h = 1.8 \min(\sigma, \mathrm{IQR}/1.34)\,n^{-1/5}`,
    as tails matter here and not peaks, and at least 0.1. Leaving one of :math:`n` numbers out takes its own kernel,
    :math:`1/n` of all, away.

    Arguments:
        values: The numbers, logarithms of lengths for example, of shape (n,).

    Example:
        >>> kernels = fit_kernels(np.repeat([-7.0, 0.0], [20, 80]))
        >>> between = (-3.5 - kernels.middle) @ kernels.whitening
        >>> bool(abs(between - kernels.centres).min() > 10)
        True
    """
    count = len(values)
    low, high = np.percentile(values, [25, 75])
    spread = min(values.std(), (high - low) / 1.34)
    bandwidth = max(1.8 * spread * count**-0.2, MIN_BANDWIDTH)
    levels = (np.arange(NUM_KERNELS) + 0.5) / NUM_KERNELS
    middle = values.mean()
    centres = (np.quantile(values, levels, method="inverted_cdf")[:, None] - middle) / bandwidth
    log_prior = np.full(NUM_KERNELS, -np.log(NUM_KERNELS))
    whitened = (values[:, None] - middle) / bandwidth
    density = np.exp(-mixture_energy(squared_distances(whitened, centres), log_prior))
    without = np.maximum(density - 1 / count, count**-2.0) / max(1 - 1 / count, 0.5)
    return Mixture(np.array([middle]), np.array([[1 / bandwidth]]), centres, log_prior, -np.log(without))


def squared_distances(whitened: Array, centres: Array) -> Array:
    """Squared distances of shape (n, C) between whitened points and centres."""
    cross = whitened @ centres.T
    squares = (whitened**2).sum(axis=1, keepdims=True) + (centres**2).sum(axis=1)
    return np.asarray(np.maximum(squares - 2 * cross, 0), dtype=np.float64)


def mixture_energy(distances: Array, log_prior: Array) -> Array:
    r"""The energy :math:`-\log\sum_y \pi_y e^{-q_y/2}` from squared distances :math:`q_y`.

    Example:
        >>> mixture_energy(np.array([[2.0]]), np.array([0.0]))
        array([1.])
    """
    logits = log_prior - distances / 2
    top = logits.max(axis=1)
    return np.asarray(-(top + np.log(np.exp(logits - top[:, None]).sum(axis=1))))
