"""Sums over neighbours with learnt weights, on the structure of a sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from degem.ops.features import sparse_csr


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
