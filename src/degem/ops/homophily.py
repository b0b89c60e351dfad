"""How much more often neighbours share a class than chance would have it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from degem.ops.estimates import fit_logistic

PSEUDO_EDGES = 5.0
GUESS_PENALTY = 3e-4
BLOCK = 1 << 16  # nodes whose edges are looked at together


def excess_homophily(adjacency: sp.csr_array, labels: NDArray[np.int64], guess: float = 0.0) -> float:
    r"""The homophily of known labels beyond chance, :math:`\eta = \max(0, (h - h_0)/(1 - h_0))`, between 0 and 1.

    :math:`h` is the share of edges between labelled nodes whose ends agree, with five pseudo-edges at the level that
    ``guess`` stands for, so that a handful of edges proves little. Without two classes it is 0.

    Arguments:
        adjacency: The adjacency :math:`A`.
        labels: A class for each node, −1 where unknown.
        guess: What :math:`\eta` is thought to be before edges are looked at; 0 is chance, :math:`h_0 = \sum_y \pi_y^2`.

    Example:
        >>> pairs = sp.csr_array(np.kron(np.eye(50), [[0, 1], [1, 0]]))
        >>> labels = np.repeat(np.arange(50) % 2, 2)
        >>> round(excess_homophily(pairs, labels), 2), round(excess_homophily(pairs, labels, guess=1.0), 2)
        (0.91, 1.0)
    """
    shares = np.bincount(labels[labels >= 0]) / max((labels >= 0).sum(), 1)
    chance = float((shares**2).sum())
    if len(shares) < 2 or chance >= 1:
        return 0.0
    edges, agree = labelled_edges(adjacency, labels)
    prior = chance + (1 - chance) * guess
    share = (agree + PSEUDO_EDGES * prior) / (edges + PSEUDO_EDGES)
    return max(0.0, (share - chance) / (1 - chance))


def labelled_edges(adjacency: sp.csr_array, labels: NDArray[np.int64]) -> tuple[int, int]:
    """The number of edges between labelled nodes, and of those whose ends agree.

    Example:
        >>> labelled_edges(sp.csr_array(np.ones((3, 3)) - np.eye(3)), np.array([0, 1, -1]))
        (1, 0)
    """
    known, edges, agree = np.flatnonzero(labels >= 0), 0, 0
    for start in range(0, len(known), BLOCK):
        nodes = known[start : start + BLOCK]
        rows = adjacency[nodes]
        ends = labels[rows.indices]
        edges += int(np.count_nonzero(ends >= 0))
        agree += int(np.count_nonzero(ends == np.repeat(labels[nodes], np.diff(rows.indptr))))
    return edges // 2, agree // 2


def guessed_homophily(adjacency: sp.csr_array, points: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    r"""The excess homophily of classes that a classifier guesses from nodes' own features, between 0 and 1.

    Let :math:`p_j` be class probabilities and :math:`t_i` what is known of node :math:`i`. If neighbours have
    independent classes, :math:`E[t_i^\top p_j]` over edges is :math:`\bar t^\top \bar p`. If they share them, and
    features depend on classes alone, it is the mean over classes of :math:`E[t \mid y]^\top E[p \mid y]`, where
    :math:`E[p \mid y] = E[p_y\,p] / \bar p_y`. The guess is where the graph lies between the two: the lower of that for
    :math:`t_i = p_i` over all edges, and for :math:`t_i` the label over edges from labelled nodes.

    Arguments:
        adjacency: The adjacency :math:`A`, of shape (n, n).
        points: What the classifier sees of each node, of shape (n, d); nothing of its neighbours.
        labels: A class for each node, −1 where unknown.

    Example:
        >>> pairs = sp.csr_array(np.kron(np.eye(50), [[0, 1], [1, 0]]))
        >>> labels = np.repeat(np.arange(50) % 2, 2)
        >>> points = np.eye(2, dtype=np.float32)[labels]
        >>> few = np.where(np.arange(100) < 8, labels, -1)
        >>> round(guessed_homophily(pairs, points, few), 2)
        1.0
    """
    known = np.flatnonzero(labels >= 0)
    classes, numbered = np.unique(labels[known], return_inverse=True)
    ends = np.asarray(adjacency.sum(axis=1), dtype=np.float64)
    if len(classes) < 2 or not ends[known].any():
        return 0.0
    weight, bias = fit_logistic(points[known], numbered, GUESS_PENALTY)
    guess = softmax(points @ weight.T + bias, axis=1)
    share = ends / ends.sum()
    mean = share @ guess
    given_class = (share[:, None] * guess).T @ guess / np.maximum(mean, 1e-12)[:, None]
    around = adjacency @ guess
    told = np.eye(len(classes))[numbered]
    found = [
        _between((guess * around).sum() / ends.sum(), mean @ mean, (mean[:, None] * given_class**2).sum()),
        _between(
            (told * around[known]).sum() / ends[known].sum(),
            (ends[known] @ told) @ mean / ends[known].sum(),
            (ends[known] @ told) @ np.diag(given_class) / ends[known].sum(),
        ),
    ]
    return float(np.clip(min(found), 0.0, 1.0))


def _between(value: float, low: float, high: float) -> float:
    return (value - low) / max(high - low, 1e-9)
