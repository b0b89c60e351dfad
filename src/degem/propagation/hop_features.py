"""Hop features X, SX, …, S^L X of all nodes, of a few, or as means of classes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.features import dense
from degem.ops.neighbours import root_degrees
from degem.propagation import Columns, choose_propagator
from degem.propagation.propagator import BLOCK, spans


def hop_features(
    adjacency: sp.csr_array, x: NDArray[np.float32], num_hops: int, *, self_weight: float
) -> NDArray[np.float32]:
    r"""The hop features :math:`X^{(0)}, …, X^{(L)}`, :math:`X^{(\ell)} = S X^{(\ell-1)}`, of shape :math:`(L+1, n, r)`.

    :math:`S = \beta I + D^{-1/2} A D^{-1/2}`.

    Arguments:
        adjacency: The adjacency :math:`A`.
        x: The features :math:`X^{(0)}`, of shape :math:`(n, r)`.
        num_hops: The number of hops :math:`L`.
        self_weight: The weight :math:`\beta` of the node itself.

    Example:
        >>> pair = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
        >>> hop_features(pair, np.array([[1.0], [0.0]], dtype=np.float32), 2, self_weight=0.0)[:, 0, 0]
        array([1., 0., 1.], dtype=float32)
    """
    root = root_degrees(adjacency)
    hops = np.empty((num_hops + 1, *x.shape), dtype=np.float32)
    propagator = choose_propagator(2 * x.nbytes)
    for block in propagator.hops(adjacency, Columns.of(x).over(root), num_hops, self_weight=self_weight):
        np.multiply(block.values, root, out=hops[block.hop, :, block.columns])
    return hops


def hop_rows(
    adjacency: sp.csr_array,
    features: NDArray[np.float32] | sp.csr_array,
    nodes: NDArray[np.int64],
    num_hops: int,
    self_weight: float,
) -> list[NDArray[np.float32]]:
    r"""Rows of :math:`X, SX, …, S^L X` for some nodes only.

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
    num_nodes, width = features.shape
    root, hops = root_degrees(adjacency), range(num_hops + 1)
    columns = Columns.by_block(width, lambda rows, columns: dense(features[rows, columns])).over(root)
    propagator = choose_propagator(8 * num_nodes * width)
    return list(propagator.sample(adjacency, columns, hops, nodes, self_weight=self_weight) * root[nodes])


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
        self_weight: The weight :math:`β` of the node itself.
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
    root = root_degrees(adjacency)
    share = np.zeros((adjacency.shape[0], classes.max() + 1), dtype=np.float32)
    share[nodes, classes] = (1 / np.bincount(classes))[classes] / root[nodes, 0]
    at_once = max(budget_bytes // share.nbytes - 1, 1)
    weights: list[NDArray[np.float32]] = []
    means: list[NDArray[np.float32]] = []
    propagator = choose_propagator(2 * share.nbytes)
    for block in propagator.hops(adjacency, Columns.of(share), num_hops, self_weight=self_weight):
        weights.append(block.values * root)
        if len(weights) == at_once or block.hop == num_hops:
            means.extend(_weighted_sums(rows_of, weights))
            weights.clear()
    strips = [means[start : start + num_hops + 1] for start in range(0, len(means), num_hops + 1)]
    return np.concatenate([np.stack(strip) for strip in strips], axis=1)


def _weighted_sums(
    rows_of: Callable[[slice], NDArray[np.float32] | sp.csr_array], weights: list[NDArray[np.float32]]
) -> list[NDArray[np.float32]]:
    """The sums of rows by each of some weights (n, C), from one pass: arrays of shape (C, d₀)."""
    total = sum(
        dense(rows_of(rows).T @ np.hstack([each[rows] for each in weights])) for rows in spans(len(weights[0]), BLOCK)
    )
    return np.split(np.asarray(total).T, len(weights))
