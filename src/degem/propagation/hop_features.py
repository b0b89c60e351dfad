"""Hop features X, SX, …, S^L X of all nodes or of a few."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.features import dense
from degem.ops.neighbours import root_degrees
from degem.propagation import Columns, choose_propagator


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
