"""Hop features of a few nodes, without propagating the whole graph."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def hop_rows(
    adjacency: sp.csr_array,
    features: NDArray[np.float32] | sp.csr_array,
    nodes: NDArray[np.int64],
    num_hops: int,
    self_weight: float,
) -> list[NDArray[np.float32]]:
    r"""Rows of :math:`X, SX, …, S^L X` with :math:`S = βI + D^{-1/2} A D^{-1/2}`, for some nodes only.

    The rows of :math:`S^l` are formed first, so the cost follows the nodes' neighbourhoods and not the graph.

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
    num_nodes = adjacency.shape[0]
    degrees = np.diff(adjacency.indptr)
    scale = sp.diags_array(1 / np.sqrt(np.maximum(degrees, 1)).astype(np.float32))
    reach = sp.csr_array(
        (np.ones(len(nodes), np.float32), nodes, np.arange(len(nodes) + 1)), shape=(len(nodes), num_nodes)
    )
    rows = [_dense(reach @ features)]
    for _ in range(num_hops):
        reach = sp.csr_array(self_weight * reach + ((reach @ scale) @ adjacency) @ scale)
        rows.append(_dense(reach @ features))
    return rows


def _dense(matrix: NDArray[np.float32] | sp.csr_array) -> NDArray[np.float32]:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float32)
