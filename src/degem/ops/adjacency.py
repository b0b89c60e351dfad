"""The adjacency as networks multiply with it: normalised once, then one product a layer, or with learnt weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from degem.ops.features import sparse_csr, to_tensor
from degem.ops.neighbours import strengths


def gcn_adjacency(adjacency: sp.csr_array, device: str = "cpu") -> Tensor:
    r"""The normalised adjacency with self-loops :math:`\hat{D}^{-1/2}(A + I)\hat{D}^{-1/2}` (Kipf & Welling 2017).

    Arguments:
        adjacency: The adjacency :math:`A`, symmetric, no self-loops.
        device: Where the sparse CSR tensor lives.

    Example:
        >>> gcn_adjacency(sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))).to_dense()
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
    """
    looped = sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0], dtype=np.float32, format="csr"))
    scale = (1 / np.sqrt(strengths(looped).astype(np.float64))).astype(np.float32)
    rows = np.repeat(np.arange(looped.shape[0]), np.diff(looped.indptr))
    parts = (scale[rows] * scale[looped.indices] * looped.data, looped.indices, looped.indptr)
    return to_tensor(sp.csr_array(parts, shape=looped.shape), device)


def symmetric_product(matrix: Tensor, x: Tensor) -> Tensor:
    r"""The product :math:`Mx` with a symmetric sparse matrix, differentiable in :math:`x`.

    PyTorch's own backward transposes the matrix at every call; for a symmetric one :math:`M^\top g = Mg`, which makes a
    training step of a two-layer GCN on Amazon-Photo a third shorter.

    Arguments:
        matrix: The symmetric matrix :math:`M`, sparse CSR, of shape (n, n).
        x: Node values of shape (n, r).
    """
    product: Tensor = _SymmetricProduct.apply(matrix, x)  # type: ignore[no-untyped-call]
    return product


class _SymmetricProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor, x: Tensor) -> Tensor:
        ctx.matrix = matrix
        return matrix @ x

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[None, Tensor]:
        return None, ctx.matrix @ gradients[0]


@dataclass(frozen=True)
class Edges:
    """The edges of a symmetric graph with self-loops, sorted by their receiving node.

    Arguments:
        pointers: Where each node's edges start, of shape (n + 1,).
        receivers: The node that receives, one an edge.
        senders: The node that sends, one an edge.
        reverse: The position of the same edge the other way round.
    """

    pointers: Tensor
    receivers: Tensor
    senders: Tensor
    reverse: Tensor


def looped_edges(adjacency: sp.csr_array, device: str = "cpu") -> Edges:
    """The edges of an adjacency and one self-loop a node.

    Arguments:
        adjacency: The adjacency, symmetric, ones, no self-loops.
        device: Where the tensors live.
    """
    looped = sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0], dtype=np.float32, format="csr"))
    looped.sort_indices()
    positions = sp.csr_array((np.arange(looped.nnz), looped.indices, looped.indptr), shape=looped.shape)
    reverse = positions.T.tocsr()
    reverse.sort_indices()
    receivers = np.repeat(np.arange(looped.shape[0]), np.diff(looped.indptr))
    parts = (looped.indptr, receivers, looped.indices, reverse.data)
    return Edges(*(torch.from_numpy(part.astype(np.int64)).to(device) for part in parts))


def weighted_sum(edges: Edges, weights: Tensor, x: Tensor) -> Tensor:
    r"""The sum over neighbours :math:`y_i = \sum_j w_{ij} x_j`, differentiable in both.

    Neither direction writes one row an edge and a column: that would be the largest tensor of a network.

    Arguments:
        edges: The edges :math:`(i, j)`.
        weights: Their weights :math:`w`, of shape (m,).
        x: Node values of shape (n, r).

    Example:
        >>> edges = looped_edges(sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32)))
        >>> weighted_sum(edges, torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([[1.0], [10.0]])).ravel()
        tensor([21., 43.])
    """
    total: Tensor = _WeightedSum.apply(edges, weights, x)  # type: ignore[no-untyped-call]
    return total


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, edges: Edges, weights: Tensor, x: Tensor) -> Tensor:
        ctx.edges = edges
        ctx.save_for_backward(weights, x)
        return _matrix(edges, weights) @ x

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[None, Tensor, Tensor]:
        weights, x = ctx.saved_tensors
        edges, gradient = ctx.edges, gradients[0].contiguous()
        pattern = _matrix(edges, torch.ones_like(weights))
        of_weights = torch.sparse.sampled_addmm(pattern, gradient, x.t().contiguous(), beta=0.0).values()
        return None, of_weights, _matrix(edges, weights[edges.reverse]) @ gradient


def _matrix(edges: Edges, weights: Tensor) -> Tensor:
    num_nodes = len(edges.pointers) - 1
    return sparse_csr(edges.pointers, edges.senders, weights, (num_nodes, num_nodes))
