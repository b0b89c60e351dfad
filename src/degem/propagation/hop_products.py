"""Hop features times weights, S^l X W_l, differentiable in the weights, in the cheaper of the two orders."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from degem.ops.features import Features
from degem.propagation.hop_features import hop_features
from degem.threads import kernel_threads

WIDTH = 64  # columns that travel together: they stay in the processor's cache from the features to the last hop
SPARSE_COST = 6.0  # a multiplication of a sparse product, in multiplications of a dense one: measured


class ProjectedFirst:
    r"""Products :math:`S^\ell (X W_\ell)` for sparse features: only the columns of the weights travel.

    Arguments:
        matrix: The propagation matrix :math:`S`, symmetric.
        features: The features :math:`X`, of shape :math:`(n, d_0)`.
    """

    def __init__(self, matrix: sp.csr_array, features: sp.csr_array) -> None:
        self.matrix, self.features = matrix, features
        self.transposed = sp.csr_array(features.T)

    def times(self, weight: Tensor, hops: range) -> Tensor:
        r"""The products, of shape (hops, n, d), with weights :math:`W_\ell` of shape (hops, d₀, d)."""
        products: Tensor = _Products.apply(weight, self, hops)  # type: ignore[no-untyped-call]
        return products

    def permuted(self, order: NDArray[np.int64]) -> ProjectedFirst:
        """The same graph, where every node has the features of another."""
        return ProjectedFirst(self.matrix, self.features[order])


class PropagatedFirst:
    r"""Products :math:`(S^\ell X) W_\ell` for dense features: the hop features are computed once.

    Arguments:
        adjacency: The adjacency :math:`A`.
        features: The features :math:`X`, of shape :math:`(n, d_0)`.
        num_hops: The largest hop :math:`L`.
        self_weight: The weight :math:`\beta` of the node itself.
    """

    def __init__(
        self, adjacency: sp.csr_array, features: NDArray[np.float32], num_hops: int, self_weight: float
    ) -> None:
        self.adjacency, self.self_weight = adjacency, self_weight
        self.hops = hop_features(adjacency, features, num_hops, self_weight=self_weight)

    def times(self, weight: Tensor, hops: range) -> Tensor:
        r"""The products, of shape (hops, n, d), with weights :math:`W_\ell` of shape (hops, d₀, d)."""
        return torch.bmm(torch.from_numpy(self.hops[hops.start : hops.stop]).to(weight.device), weight)

    def permuted(self, order: NDArray[np.int64]) -> PropagatedFirst:
        """The same graph, where every node has the features of another."""
        return PropagatedFirst(self.adjacency, self.hops[0][order], len(self.hops) - 1, self.self_weight)


HopProducts = ProjectedFirst | PropagatedFirst


def hop_products(adjacency: sp.csr_array, features: Features, num_hops: int, *, self_weight: float) -> HopProducts:
    r"""The products of a graph's hop features with weights, in the order that takes less time.

    Projecting first takes :math:`\mathrm{nnz}(X) + \ell\,\mathrm{nnz}(S)` sparse multiplications a column for hop
    :math:`\ell`, propagating first :math:`n\,d_0` dense ones.

    Arguments:
        adjacency: The adjacency :math:`A`, symmetric, ones, no self-loops.
        features: The features :math:`X`, of shape :math:`(n, d_0)`, dense or CSR.
        num_hops: The largest hop :math:`L`.
        self_weight: The weight :math:`\beta` of the node itself in :math:`S = \beta I + D^{-1/2} A D^{-1/2}`.

    Example:
        >>> pair = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
        >>> products = hop_products(pair, np.array([[1], [0]], dtype=np.float32), 1, self_weight=0.5)
        >>> products.times(torch.ones(2, 1, 1), range(2))[:, :, 0]
        tensor([[1.0000, 0.0000],
                [0.5000, 1.0000]])
    """
    if isinstance(features, sp.csr_array):
        nodes, columns = features.shape
        sparse = features.nnz + num_hops / 2 * (adjacency.nnz + nodes)  # the mean over hops 0 … L
        if SPARSE_COST * sparse < nodes * columns:
            return ProjectedFirst(propagation_matrix(adjacency, self_weight), features)
        features = features.toarray()
    return PropagatedFirst(adjacency, np.ascontiguousarray(features, dtype=np.float32), num_hops, self_weight)


def propagation_matrix(adjacency: sp.csr_array, self_weight: float) -> sp.csr_array:
    r"""The matrix :math:`S = \beta I + D^{-1/2} A D^{-1/2}`.

    Example:
        >>> propagation_matrix(sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32)), 0.5).toarray()
        array([[0.5, 1. ],
               [1. , 0.5]], dtype=float32)
    """
    scale = sp.diags_array(1 / np.sqrt(np.maximum(np.diff(adjacency.indptr), 1)))
    matrix = self_weight * sp.eye_array(adjacency.shape[0]) + scale @ adjacency @ scale
    return sp.csr_array(matrix, dtype=np.float32)


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, graph: ProjectedFirst, hops: range) -> Tensor:
        ctx.graph, ctx.hops = graph, hops
        w = np.ascontiguousarray(weight.detach().cpu().numpy())
        out = np.empty((len(hops), graph.features.shape[0], w.shape[2]), dtype=np.float32)
        with kernel_threads():
            _project_then_propagate(_parts(graph.features), _parts(graph.matrix), w, hops.start, out)
        return torch.from_numpy(out).to(weight.device)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None]:
        gradient = np.ascontiguousarray(gradients[0].cpu().numpy())
        out = np.empty((len(ctx.hops), ctx.graph.features.shape[1], gradient.shape[2]), dtype=np.float32)
        transposed, matrix = _parts(ctx.graph.transposed), _parts(ctx.graph.matrix)
        with kernel_threads():
            _propagate_then_project(transposed, matrix, gradient, ctx.hops.start, out)
        return torch.from_numpy(out).to(gradients[0].device), None, None


def _parts(matrix: sp.csr_array) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]:
    return matrix.indptr, matrix.indices, matrix.data


@numba.njit(parallel=True, cache=True)
def _project_then_propagate(features: Any, matrix: Any, weight: Any, first: Any, out: Any) -> None:
    blocks = -(-weight.shape[2] // WIDTH)
    for task in numba.prange(len(weight) * blocks):
        hop, start = task // blocks, task % blocks * WIDTH
        x = _product(features, _packed(weight[hop], start))
        for _ in range(first + hop):
            x = _product(matrix, x)
        _unpack(x, out[hop], start)


@numba.njit(parallel=True, cache=True)
def _propagate_then_project(transposed: Any, matrix: Any, gradient: Any, first: Any, out: Any) -> None:
    blocks = -(-gradient.shape[2] // WIDTH)
    for task in numba.prange(len(gradient) * blocks):
        hop, start = task // blocks, task % blocks * WIDTH
        x = _packed(gradient[hop], start)
        for _ in range(first + hop):
            x = _product(matrix, x)
        _unpack(_product(transposed, x), out[hop], start)


@numba.njit(cache=True)
def _packed(x: Any, start: Any) -> Any:
    block = np.zeros((len(x), WIDTH), dtype=np.float32)
    width = min(WIDTH, x.shape[1] - start)
    for row in range(len(x)):
        for c in range(width):
            block[row, c] = x[row, start + c]
    return block


@numba.njit(cache=True)
def _unpack(block: Any, out: Any, start: Any) -> None:
    width = min(WIDTH, out.shape[1] - start)
    for row in range(len(out)):
        for c in range(width):
            out[row, start + c] = block[row, c]


@numba.njit(cache=True, fastmath=True)
def _product(matrix: Any, x: Any) -> Any:
    # Four entries at a time, as in propagation; the fixed width lets the compiler unroll.
    indptr, indices, data = matrix
    out = np.zeros((len(indptr) - 1, WIDTH), dtype=np.float32)
    for row in range(len(out)):
        entry, end = indptr[row], indptr[row + 1]
        while entry + 3 < end:
            i, j, k, m = indices[entry], indices[entry + 1], indices[entry + 2], indices[entry + 3]
            p, q, u, v = data[entry], data[entry + 1], data[entry + 2], data[entry + 3]
            for c in range(WIDTH):
                out[row, c] += (p * x[i, c] + q * x[j, c]) + (u * x[k, c] + v * x[m, c])
            entry += 4
        while entry < end:
            i, p = indices[entry], data[entry]
            for c in range(WIDTH):
                out[row, c] += p * x[i, c]
            entry += 1
    return out
