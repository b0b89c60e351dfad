"""The adjacency as networks multiply with it: normalised once, then one product a layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from degem.ops.features import to_tensor
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
