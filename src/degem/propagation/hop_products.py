"""Hop features times weights, S^l X W_l, differentiable in the weights, in the cheaper of the two orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from degem.ops.adjacency import symmetric_product
from degem.ops.features import Features, to_tensor
from degem.ops.neighbours import divisors
from degem.propagation.hop_features import hop_features

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
        device = str(weight.device)
        features, transposed = to_tensor(self.features, device), to_tensor(self.transposed, device)
        matrix = to_tensor(self.matrix, device)
        products = []
        for each, hop in zip(weight, hops, strict=True):
            product: Tensor = _SparseProduct.apply(features, transposed, each)  # type: ignore[no-untyped-call]
            for _ in range(hop):
                product = symmetric_product(matrix, product)
            products.append(product)
        return torch.stack(products)

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
    scale = sp.diags_array(1 / np.sqrt(divisors(adjacency).astype(np.float64)))
    matrix = self_weight * sp.eye_array(adjacency.shape[0]) + scale @ adjacency @ scale
    return sp.csr_array(matrix, dtype=np.float32)


class _SparseProduct(torch.autograd.Function):
    """A product with a sparse matrix whose transpose is at hand: PyTorch's own backward makes it at every call."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
        ctx.transposed = transposed
        return matrix @ x

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[None, None, Tensor]:
        return None, None, ctx.transposed @ gradients[0]
