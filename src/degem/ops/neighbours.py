"""The mean of each node's neighbours, the one product with the adjacency that propagation needs, and strengths."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.threads import kernel_threads


def average(
    adjacency: sp.csr_array,
    values: NDArray[np.float32],
    *,
    self_weight: float,
    weight: float = 1.0,
    rows: NDArray[np.int64] | None = None,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    r"""One step :math:`v \mapsto \beta v + w\,D^{-1} A v`; isolated nodes get :math:`\beta v`.

    :math:`D` holds the nodes' strengths: their degrees, where no edge has a weight.

    The result does not depend on the number of threads, nor, without numba's ``fastmath``, on who compiled the kernel.

    Arguments:
        adjacency: The adjacency :math:`A`.
        values: Node values :math:`v` of shape (n, columns), C-contiguous.
        self_weight: The weight :math:`\beta` of the node itself.
        weight: The weight :math:`w` of the neighbours.
        rows: The nodes whose means are wanted; default: all.
        out: Where to write, if not into a new array.

    Example:
        >>> path = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
        >>> average(path, np.array([[1.0], [4.0], [5.0]], dtype=np.float32), self_weight=0.0).ravel()
        array([4., 3., 4.], dtype=float32)
    """
    rows = np.arange(adjacency.shape[0]) if rows is None else rows
    out = np.empty((len(rows), values.shape[1]), dtype=np.float32) if out is None else out
    weighted = is_weighted(adjacency if len(rows) == adjacency.shape[0] else adjacency[rows])
    settings = (float(self_weight), float(weight), values, out)
    with kernel_threads():  # floats of Python: those of NumPy take longer to hand over
        if weighted:
            weights = adjacency.data.astype(np.float32, copy=False)
            _weighted_average(adjacency.indptr, adjacency.indices, weights, rows, *settings)
        else:
            _average(adjacency.indptr, adjacency.indices, rows, *settings)
    return out


def is_weighted(adjacency: sp.csr_array) -> bool:
    """Whether an edge has another weight than 1.

    Example:
        >>> is_weighted(sp.csr_array([[0.0, 2.0], [2.0, 0.0]])), is_weighted(sp.csr_array([[0.0, 1.0], [1.0, 0.0]]))
        (True, False)
    """
    weights = adjacency.data
    return weights.strides != (0,) and bool((weights != 1).any())  # memory maps have one 1 for all


def strengths(adjacency: sp.csr_array) -> NDArray[np.float32]:
    """The sum of the weights of each node's edges: the number of its neighbours, where no edge has a weight.

    Example:
        >>> strengths(sp.csr_array(np.array([[0, 2, 0], [2, 0, 0], [0, 0, 0]], dtype=np.float32)))
        array([2., 2., 0.], dtype=float32)
    """
    if not is_weighted(adjacency):
        return np.diff(adjacency.indptr).astype(np.float32)
    return np.asarray(adjacency.sum(axis=1), dtype=np.float32)


def divisors(adjacency: sp.csr_array) -> NDArray[np.float32]:
    """The strengths, 1 for isolated nodes: what makes a mean of the sum over neighbours."""
    found = strengths(adjacency)
    return np.where(found > 0, found, np.float32(1))


def root_degrees(adjacency: sp.csr_array) -> NDArray[np.float32]:
    r"""The roots of the strengths, the diagonal of :math:`D^{1/2}`, of shape (n, 1), with 1 for isolated nodes.

    Example:
        >>> root_degrees(sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))).ravel()
        array([1.       , 1.4142135, 1.       ], dtype=float32)
    """
    return np.sqrt(divisors(adjacency))[:, None]


def returning(adjacency: sp.csr_array, inverse: NDArray[np.float32]) -> NDArray[np.float32]:
    """The share of walks of two steps that end where they began, of each node.

    Arguments:
        adjacency: The adjacency.
        inverse: 1 / strength of each node.

    Example:
        >>> star = sp.csr_array(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=np.float32))
        >>> returning(star, 1 / divisors(star))
        array([1. , 0.5, 0.5], dtype=float32)
    """
    if is_weighted(adjacency):
        return np.asarray(adjacency.power(2) @ inverse, dtype=np.float32) * inverse
    return average(adjacency, inverse[:, None], self_weight=0.0)[:, 0]


@numba.njit(parallel=True, cache=True, nogil=True)
def _average(indptr: Any, indices: Any, rows: Any, self_weight: Any, weight: Any, x: Any, out: Any) -> None:
    self_weight, weight = np.float32(self_weight), np.float32(weight)
    for place in numba.prange(len(rows)):
        row = rows[place]
        share = weight / np.float32(max(indptr[row + 1] - indptr[row], 1))
        for c in range(x.shape[1]):
            out[place, c] = self_weight * x[row, c]
        for entry in range(indptr[row], indptr[row + 1]):
            for c in range(x.shape[1]):
                out[place, c] += share * x[indices[entry], c]


@numba.njit(parallel=True, cache=True, nogil=True)
def _weighted_average(
    indptr: Any, indices: Any, weights: Any, rows: Any, self_weight: Any, weight: Any, x: Any, out: Any
) -> None:
    self_weight, weight = np.float32(self_weight), np.float32(weight)
    for place in numba.prange(len(rows)):
        row = rows[place]
        strength = np.float32(0)
        for entry in range(indptr[row], indptr[row + 1]):
            strength += weights[entry]
        for c in range(x.shape[1]):
            out[place, c] = self_weight * x[row, c]
        for entry in range(indptr[row], indptr[row + 1]):
            share = weight * (weights[entry] / strength)
            for c in range(x.shape[1]):
                out[place, c] += share * x[indices[entry], c]


def structural_features(adjacency: sp.csr_array, *, dim: int = 32, seed: int = 0) -> NDArray[np.float32]:
    r"""Log-degree and a random projection of the adjacency: :math:`[\log(1 + \deg) \,\|\, \hat{A}R \,\|\, \hat{A}^2R]`.

    :math:`\hat{A} = D^{-1}A` averages over neighbours and :math:`R` is Gaussian, seeded. Only log-degree means the
    same thing on two different graphs; the projection tells nodes of one graph apart.

    Arguments:
        adjacency: The adjacency :math:`A`, of shape :math:`(n, n)`.
        dim: The number of columns of the projection; half come from one hop, half from two.
        seed: Seed of :math:`R`.

    Example:
        >>> path = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
        >>> structural_features(path, dim=4).shape
        (3, 5)
    """
    num_nodes = adjacency.shape[0]
    degrees = strengths(adjacency)
    average = sp.diags_array(1 / divisors(adjacency), dtype=np.float32) @ adjacency
    random = np.random.default_rng(seed).standard_normal((num_nodes, dim // 2), dtype=np.float32)
    one_hop = average @ random
    two_hops = average @ one_hop
    return np.hstack([np.log1p(degrees)[:, None], one_hop, two_hops]).astype(np.float32)
