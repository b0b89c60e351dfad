"""Hop features X, SX, …, S^L X of all nodes, or as means of classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.features import Features, dense
from degem.ops.neighbours import root_degrees
from degem.propagation import Columns, choose_propagator
from degem.propagation.propagator import BLOCK


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


def class_hop_means(
    adjacency: sp.csr_array,
    features: NDArray[np.float32] | sp.csr_array,
    labels: NDArray[np.int64],
    nodes: NDArray[np.int64],
    num_hops: int,
    self_weight: float,
    *,
    encode: Callable[[Features], Features] | None = None,
    memory_budget: float | None = None,
) -> NDArray[np.float32]:
    r"""The mean of :math:`X^{(\ell)}` over some nodes of each class, without propagating the features.

    :math:`S` is symmetric, so :math:`1_y^\top S^\ell X = (S^\ell 1_y)^\top X`: one column a class travels.

    Arguments:
        adjacency: The adjacency :math:`A`.
        features: The features :math:`X`.
        labels: A class for each node, −1 where unknown.
        nodes: The nodes to average; those without a label count only where none has one.
        num_hops: The number of hops :math:`L`.
        self_weight: The weight :math:`β` of the node itself.
        encode: Makes of some rows of the features what is averaged.
        memory_budget: MiB that what travels may take in memory.

    Returns:
        An array of shape :math:`(L + 1, C, d_0)`, with one class where there are no labels.

    Example:
        >>> pair = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
        >>> class_hop_means(pair, np.eye(2, dtype=np.float32), np.array([0, 1]), np.arange(2), 1, 0.0)[1]
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
    propagator = choose_propagator((num_hops + 1) * share.nbytes, memory_budget=memory_budget)
    columns, hops = Columns.of(share), range(num_hops + 1)
    with propagator.keep(adjacency, columns, hops, self_weight=self_weight) as kept:
        blocks = propagator.map_rows(partial(_weighted_sums, encode), kept, features, root, block_rows=BLOCK)
        total = sum(each for (sums,) in blocks for each in np.asarray(sums))
    return np.asarray(total).T.reshape(num_hops + 1, share.shape[1], features.shape[1])


def _weighted_sums(
    encode: Callable[[Features], Features] | None, hops: NDArray[np.float32], rows: Features, root: NDArray[np.float32]
) -> tuple[NDArray[np.float32]]:
    """The sums of rows by each column of each hop, of shape (1, d₀, hops · columns)."""
    encoded = rows if encode is None else encode(rows)
    return (dense(encoded.T @ np.hstack(list(hops * root)))[None],)
