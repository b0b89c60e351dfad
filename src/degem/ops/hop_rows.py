"""Hop features of a few nodes, and their means by class, without holding those of all nodes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.hop_store import BLOCK, HopSource
from degem.ops.propagation import average, root_degrees


def hop_rows(
    adjacency: sp.csr_array,
    features: NDArray[np.float32] | sp.csr_array,
    nodes: NDArray[np.int64],
    num_hops: int,
    self_weight: float,
) -> list[NDArray[np.float32]]:
    r"""Rows of :math:`X, SX, …, S^L X` with :math:`S = βI + D^{-1/2} A D^{-1/2}`, for some nodes only.

    Features are propagated a few columns at a time and only these rows kept, so memory does not follow the hops.

    Arguments:
        adjacency: The adjacency :math:`A`, symmetric CSR without self-loops.
        features: The features :math:`X`, of shape :math:`(n, d_0)`.
        nodes: The k nodes asked for.
        num_hops: The number of hops :math:`L`.
        self_weight: The weight :math:`β` of a node itself.

    Returns:
        :math:`L + 1` dense arrays of shape (k, d₀).

    Example:
        >>> path = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
        >>> hop_rows(path, np.eye(3, dtype=np.float32), np.array([0]), 1, 0.5)[1]
        array([[0.5       , 0.70710677, 0.        ]], dtype=float32)
    """
    source = HopSource(
        adjacency,
        lambda rows, columns: _dense(features[rows, columns]),
        features.shape[1],
        tuple(range(num_hops + 1)),
        self_weight,
    )
    return list(source.sample(nodes) * root_degrees(adjacency)[nodes])


def class_hop_means(
    adjacency: sp.csr_array,
    rows_of: Callable[[slice], NDArray[np.float32] | sp.csr_array],
    labels: NDArray[np.int64],
    nodes: NDArray[np.int64],
    num_hops: int,
    self_weight: float,
    budget_bytes: float = math.inf,
) -> NDArray[np.float32]:
    r"""The mean of :math:`X^{(\ell)}` over some nodes of each class, without propagating the features.

    :math:`S` is symmetric, so :math:`1_y^\top S^\ell X = (S^\ell 1_y)^\top X`: one column a class travels.

    Arguments:
        adjacency: The adjacency :math:`A`.
        rows_of: Some rows of the features :math:`X`, given as a slice.
        labels: A class for each node, −1 where unknown.
        nodes: The nodes to average; those without a label count only where none has one.
        num_hops: The number of hops :math:`L`.
        self_weight: The weight :math:`β` of a node itself.
        budget_bytes: What may be in memory; the features are read once for as many hops as fit.

    Returns:
        An array of shape :math:`(L + 1, C, d_0)`, with one class where there are no labels.

    Example:
        >>> pair = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
        >>> x = np.eye(2, dtype=np.float32)
        >>> class_hop_means(pair, lambda rows: x[rows], np.array([0, 1]), np.arange(2), 1, 0.0)[1]
        array([[0., 1.],
               [1., 0.]], dtype=float32)
    """
    classes = labels[nodes]
    if (classes < 0).all():
        classes = np.zeros(len(nodes), dtype=np.int64)
    nodes, classes = nodes[classes >= 0], classes[classes >= 0]
    share = np.zeros((adjacency.shape[0], classes.max() + 1), dtype=np.float32)
    root = root_degrees(adjacency)
    share[nodes, classes] = (1 / np.bincount(classes))[classes] / root[nodes, 0]
    at_once = max(budget_bytes // share.nbytes - 1, 1)
    shares: list[NDArray[np.float32]] = []
    means: list[NDArray[np.float32]] = []
    for hop in range(num_hops + 1):
        share = average(adjacency, share, self_weight=self_weight) if hop else share
        shares.append(share)
        if len(shares) == at_once or hop == num_hops:
            means.extend(_weighted_sums(rows_of, shares, root))
            shares.clear()
    return np.stack(means)


def _weighted_sums(
    rows_of: Callable[[slice], NDArray[np.float32] | sp.csr_array],
    weights: list[NDArray[np.float32]],
    root: NDArray[np.float32],
) -> list[NDArray[np.float32]]:
    """The sums of rows by each of some weights (n, C) times the root, from one pass: arrays of shape (C, d₀)."""
    spans = (slice(start, start + BLOCK) for start in range(0, len(weights[0]), BLOCK))
    total = sum(_dense(rows_of(rows).T @ (np.hstack([each[rows] for each in weights]) * root[rows])) for rows in spans)
    return np.split(np.asarray(total).T, len(weights))


def _dense(matrix: NDArray[np.float32] | sp.csr_array) -> NDArray[np.float32]:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float32)
