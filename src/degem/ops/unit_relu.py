"""Rows of unit length, ReLU and dropout: what every hop goes through before hops are joined."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def unit_relu(products: Tensor, bias: Tensor, dropout: float, scale: Tensor | None = None) -> Tensor:
    r"""The hops :math:`[\phi(s^{(0)} Z^{(0)} + b^{(0)}) \| \cdots \| \phi(s^{(L)} Z^{(L)} + b^{(L)})]` side by side.

    :math:`\phi` scales each row to unit length, then ReLU, then dropout, whose mask comes from PyTorch's global
    generator.

    Arguments:
        products: The projected hops :math:`Z`, of shape (hops, n, d).
        bias: Their bias :math:`b`, of shape (hops, 1, d).
        dropout: The dropout probability; 0 for none.
        scale: A factor :math:`s` for each row, of shape (hops, n, 1); 1 if None.

    Returns:
        A tensor of shape (n, hops · d).

    Example:
        >>> import torch
        >>> unit_relu(torch.tensor([[[3.0, 4.0]], [[-1.0, 0.0]]]), torch.zeros(2, 1, 2), 0.0)
        tensor([[0.6000, 0.8000, 0.0000, 0.0000]])
    """
    scaled = products if scale is None else scale * products
    active = F.dropout(F.relu(F.normalize(scaled + bias, dim=2)), dropout)
    return active.transpose(0, 1).flatten(1)
