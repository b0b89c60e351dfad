"""What is estimated of points in closed form or by scikit-learn: a mixture, a logistic regression, a projection."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from degem.ops.features import Features
from degem.ops.mapped import release

Array = NDArray[np.float64]

PSEUDO_COUNT = 2.0
MAX_ITERATIONS, TOLERANCE = 60, 1e-3
MAX_ROWS, MAX_WANTED = 50_000, 32


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


def fit_logistic(
    points: NDArray[np.float32], labels: NDArray[np.int64], penalty: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Weights :math:`W` (C, d) and biases :math:`b` (C) with the least :math:`\mathrm{CE} + \lambda \|W\|^2`.

    Arguments:
        points: The points, of shape (n, d).
        labels: A class for each, of at least two.
        penalty: The weight :math:`\lambda`.

    Example:
        >>> weight, bias = fit_logistic(np.eye(3, dtype=np.float32), np.array([0, 1, 2]), 1e-3)
        >>> (np.eye(3) @ weight.T + bias).argmax(axis=1)
        array([0, 1, 2])
    """
    from sklearn.exceptions import ConvergenceWarning  # slow to load, and scoring does without
    from sklearn.linear_model import LogisticRegression

    regression = LogisticRegression(C=1 / (2 * len(points) * penalty), max_iter=MAX_ITERATIONS, tol=TOLERANCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is part of the regularisation
        regression.fit(points, labels)
    weight, bias = regression.coef_, regression.intercept_
    if len(weight) == 1:  # two classes have one row: half of it for each side
        return np.vstack([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    return weight, bias


def sample_rows(features: Features, seed: int) -> Features:
    """All rows of the features, or a seeded sample where there are very many: enough for their leading directions."""
    rows = features.shape[0]
    if rows <= MAX_ROWS:
        return features
    some = features[np.sort(np.random.default_rng(seed).choice(rows, MAX_ROWS, replace=False))]
    release(features)
    return some


def fit_projection(
    features: Features,
    rank: int,
    num_random: int,
    *,
    seed: int,
    wanted: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    r"""A projection :math:`P = [V \,\|\, U \,\|\, G]`, of shape :math:`(d_0, r + q)`.

    :math:`V` holds leading right singular vectors of the features (Halko et al. 2011), :math:`U` the leading
    directions in which wanted vectors point out of their span, at most 32 of the :math:`r`. :math:`G` holds :math:`q`
    Gaussian directions orthogonal to both: features that training never saw show up there.

    Arguments:
        features: The features :math:`X`, of shape :math:`(n, d_0)`.
        rank: How many singular and wanted directions :math:`r`, at most as many as there are.
        num_random: How many random directions :math:`q`.
        seed: Seed of the singular and of the random ones.
        wanted: Vectors not to be lost, of shape (any, :math:`d_0`).
    """
    from sklearn.utils.extmath import randomized_svd  # slow to load, and scoring does without

    rng = np.random.default_rng(seed)
    width = features.shape[1]
    # every direction kept needs a row of its own; short graphs get fewer, padded with zeros so that shapes follow rank
    found = min(rank, width, features.shape[0])
    kept = randomized_svd(features, found, n_iter=2, random_state=seed)[2].T
    if wanted is not None and width > rank:  # otherwise nothing is lost
        number = min(np.linalg.matrix_rank(wanted), MAX_WANTED, rank)
        kept = _extended(kept[:, : rank - number], wanted.T.astype(np.float64), number)
    random = rng.standard_normal((width, num_random)) / np.sqrt(max(num_random, 1))
    random -= kept @ (kept.T @ random)
    padding = np.zeros((width, rank - kept.shape[1]))
    return np.hstack([kept, padding, random]).astype(np.float32)


def _extended(basis: NDArray[np.float64], vectors: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """An orthonormal basis with the leading directions of the vectors' part outside of it."""
    outside = vectors - basis @ (basis.T @ vectors)
    directions, lengths, _ = np.linalg.svd(outside, full_matrices=False)
    return np.hstack([basis, directions[:, :number][:, lengths[:number] > 1e-6 * np.linalg.norm(vectors)]])
