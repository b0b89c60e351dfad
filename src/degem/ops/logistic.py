"""Logistic regression, as weights and biases."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

MAX_ITERATIONS, TOLERANCE = 60, 1e-3


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
