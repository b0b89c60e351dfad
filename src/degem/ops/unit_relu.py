"""Rows of unit length, ReLU and dropout in one pass over memory, forward and backward."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from degem.ops.propagation import match_threads

SHORTEST = 1e-12  # rows are not divided by less, as in torch.nn.functional.normalize


def unit_relu(products: Tensor, bias: Tensor, dropout: float) -> Tensor:
    r"""The hops :math:`[\phi(Z^{(0)} + b^{(0)}) \| \cdots \| \phi(Z^{(L)} + b^{(L)})]` side by side.

    :math:`\phi` scales each row to unit length, then ReLU, then dropout, whose mask comes from PyTorch's global
    generator. Equal to ``dropout(relu(normalize(products + bias)))``; with its gradient it takes a quarter of the time
    of those, apart from drawing the mask.

    Arguments:
        products: The projected hops :math:`Z`, of shape (hops, n, d).
        bias: Their bias :math:`b`, of shape (hops, 1, d).
        dropout: The dropout probability; 0 for none.

    Returns:
        A tensor of shape (n, hops · d).

    Example:
        >>> unit_relu(torch.tensor([[[3.0, 4.0]], [[-1.0, 0.0]]]), torch.zeros(2, 1, 2), 0.0)
        tensor([[0.6000, 0.8000, 0.0000, 0.0000]])
    """
    kept = keep_mask(products.shape, dropout) if dropout else torch.empty(0, 0, 0, dtype=torch.bool)
    active: Tensor = _UnitReLU.apply(products, bias, kept, 1 / (1 - dropout))  # type: ignore[no-untyped-call]
    return active


def keep_mask(shape: Sequence[int], dropout: float) -> Tensor:
    """What dropout keeps: true with probability ``1 - dropout``, to a 65536th, from PyTorch's global generator.

    Four entries are cut from each random integer, which takes a tenth of the time of ``bernoulli_``.

    Arguments:
        shape: The shape of the mask.
        dropout: The dropout probability, below 1.

    Example:
        >>> keep_mask((2, 3), 0.0)
        tensor([[True, True, True],
                [True, True, True]])
    """
    entries = math.prod(shape)
    bits = torch.empty(-(-entries // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
    return (bits >= round(dropout * 2**16) - 2**15)[:entries].view(*shape)


class _UnitReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, products: Tensor, bias: Tensor, kept: Tensor, gain: float) -> Tensor:
        hops, nodes, dim = products.shape
        z, b = products.detach().cpu().contiguous(), bias.detach().cpu()
        out = torch.empty(nodes, hops, dim)
        match_threads()
        _forward(z.numpy(), b.numpy(), kept.numpy(), np.float32(gain), out.numpy())
        ctx.save_for_backward(z, b, out)
        ctx.gain = gain
        return out.flatten(1).to(products.device)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor, None, None]:
        z, b, out = ctx.saved_tensors
        gradient = gradients[0].cpu().contiguous().view(out.shape)
        slope = torch.empty_like(z)
        match_threads()
        _backward(z.numpy(), b.numpy(), out.numpy(), gradient.numpy(), np.float32(ctx.gain), slope.numpy())
        slope = slope.to(gradients[0].device)
        return slope, slope.sum(dim=1, keepdim=True), None, None


@numba.njit(parallel=True, cache=True, fastmath=True)
def _forward(z: Any, bias: Any, kept: Any, gain: Any, out: Any) -> None:
    hops, nodes, dim = z.shape
    for node in numba.prange(nodes):
        for hop in range(hops):
            square = np.float32(0)
            for c in range(dim):
                x = z[hop, node, c] + bias[hop, 0, c]
                square += x * x
                out[node, hop, c] = max(x, np.float32(0))
            scale = gain / max(np.sqrt(square), np.float32(SHORTEST))
            for c in range(dim):
                out[node, hop, c] *= scale
            if kept.size:
                for c in range(dim):
                    out[node, hop, c] *= kept[hop, node, c]


@numba.njit(parallel=True, cache=True, fastmath=True)
def _backward(z: Any, bias: Any, out: Any, gradient: Any, gain: Any, slope: Any) -> None:
    # With x = z + bias, u = x / |x| and g the gradient where the output is positive (there it is gain u):
    # gain (g - u (u·g)) / |x|.
    hops, nodes, dim = z.shape
    for node in numba.prange(nodes):
        for hop in range(hops):
            square, along = np.float32(0), np.float32(0)
            for c in range(dim):
                x = z[hop, node, c] + bias[hop, 0, c]
                square += x * x
                along += out[node, hop, c] * gradient[node, hop, c]
            length = np.sqrt(square)
            inverse = np.float32(1) / max(length, np.float32(SHORTEST))
            pull = along * inverse * inverse if length > np.float32(SHORTEST) else np.float32(0)
            for c in range(dim):
                passed = gain * inverse * gradient[node, hop, c] if out[node, hop, c] > 0 else np.float32(0)
                slope[hop, node, c] = passed - pull * (z[hop, node, c] + bias[hop, 0, c])
