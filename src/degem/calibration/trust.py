"""How likely a classifier is wrong about a node, learnt on calibration nodes whose class is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from degem.ops.neighbours import divisors

PENALTY = np.array([0.1, 1.0, 1.0, 1.0, 1.0])  # how often it errs takes fewer nodes to tell than when
SUREST = 1e-6  # no classifier is surer than that


def doubts(
    probabilities: NDArray[np.floating[Any]], adjacency: sp.csr_array, p_values: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""What speaks against the predicted class :math:`\hat y` of each node, of shape (n, 4).

    :math:`\operatorname{logit}(1 - p_{\hat y})`, what the classifier says itself; :math:`1 - \bar p_{\hat y}` over
    neighbours, and over two steps; :math:`-\log` of the p-value. Isolated nodes stand in for their neighbours.

    Arguments:
        probabilities: Class probabilities, of shape (n, C).
        adjacency: The adjacency.
        p_values: How usual each node is.

    Example:
        >>> path = sp.csr_array(np.diag(np.ones(2), 1) + np.diag(np.ones(2), -1))
        >>> doubts(np.array([[0.5, 0.5], [0.75, 0.25], [0.0, 1.0]]), path, np.ones(3))[:, 1:3].tolist()
        [[0.25, 0.75], [0.75, 0.25], [0.75, 0.25]]
    """
    guess, degrees = probabilities.argmax(axis=1), divisors(adjacency)
    near, far = (1.0 - probabilities.max(axis=1).astype(np.float64) for _ in range(2))
    own = logit(near.clip(SUREST, 1 - SUREST))
    for label in range(probabilities.shape[1]):  # a column at a time: no further array of shape (n, C)
        one_step = adjacency @ probabilities[:, label] / degrees
        two_steps = adjacency @ one_step / degrees
        rows = (guess == label) & (np.diff(adjacency.indptr) > 0)
        near[rows], far[rows] = 1 - one_step[rows], 1 - two_steps[rows]
    return np.stack([own, near, far, -np.log(p_values)], axis=1)


def fit_errors(doubts: NDArray[np.float64], wrong: NDArray[np.bool_]) -> NDArray[np.float64]:
    r"""Weights :math:`(b, w)` of :math:`\operatorname{logit} P(\text{wrong}) = b + w^\top x` with :math:`w \ge 0`.

    A logistic regression whose ridge draws to the classifier's own word, :math:`b = 0, w = (1, 0, 0, 0)`: with few
    nodes little is changed of that. A doubt never speaks for the prediction, so none that is larger than any seen, as
    in another network, makes a node more trusted.

    Arguments:
        doubts: What speaks against each prediction, from :func:`doubts`.
        wrong: Which of the predictions are wrong.

    Example:
        >>> x = np.column_stack([np.linspace(-3, 3, 50), np.zeros((50, 3))])
        >>> fit_errors(x, np.zeros(50, dtype=bool))[0] < 0  # never wrong: less doubt than the classifier has
        np.True_
    """
    mean, spread = doubts.mean(axis=0), doubts.std(axis=0)
    spread[spread == 0] = 1.0
    points = np.column_stack([np.ones(len(doubts)), (doubts - mean) / spread])
    word = np.array([mean[0], spread[0], 0.0, 0.0, 0.0])

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        z = points @ weights
        value = np.logaddexp(0, z).sum() - z[wrong].sum() + (PENALTY / 2 * (weights - word) ** 2).sum()
        return float(value), points.T @ (expit(z) - wrong) + PENALTY * (weights - word)

    bounds = [(None, None), *[(0.0, None)] * doubts.shape[1]]
    found = minimize(loss, word, jac=True, method="L-BFGS-B", bounds=bounds).x
    slopes = found[1:] / spread
    return np.array([found[0] - slopes @ mean, *slopes])


def error_chances(weights: NDArray[np.float64], doubts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The chance that each prediction is wrong, by weights from :func:`fit_errors`."""
    return np.asarray(expit(weights[0] + doubts @ weights[1:]))
