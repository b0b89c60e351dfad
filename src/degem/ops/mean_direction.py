"""Where several vectors a row point on average, in one pass over memory."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

SHORTEST = 1e-8  # rows are not divided by less


def mean_direction(hops: Tensor, scale: Tensor) -> Tensor:
    r"""The sums :math:`\sum_\ell s^{(\ell)} X^{(\ell)}`, each row scaled to length 1.

    Equal to ``normalize((scale * hops).sum(dim=0))``, in a tenth of the time: nothing but the result is written.

    Arguments:
        hops: The hops :math:`X`, of shape (hops, n, r).
        scale: A factor :math:`s` for each row, of shape (hops, n, 1).

    Returns:
        A tensor of shape (n, r).

    Example:
        >>> mean_direction(torch.tensor([[[3.0, 0.0]], [[0.0, 2.0]]]), torch.tensor([[[1.0]], [[2.0]]]))
        tensor([[0.6000, 0.8000]])
    """
    mean: Tensor = _MeanDirection.apply(hops, scale)  # type: ignore[no-untyped-call]
    return mean


class _MeanDirection(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hops: Tensor, scale: Tensor) -> Tensor:
        mean, inverse = torch.empty(hops.shape[1:]), torch.empty(hops.shape[1], 1)
        x = tuple(hop.numpy() for hop in hops.detach().cpu().unbind())  # rows of a hop lie together, hops may not
        _forward(x, scale.detach().cpu().contiguous().numpy(), mean.numpy(), inverse.numpy())
        mean, inverse = mean.to(hops.device), inverse.to(hops.device)
        ctx.save_for_backward(hops, scale, mean, inverse)
        return mean

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor]:
        hops, scale, mean, inverse = ctx.saved_tensors
        along = (mean * gradients[0]).sum(dim=1, keepdim=True)
        slope = inverse * (gradients[0] - mean * along)  # by the sum
        return slope * scale, (slope * hops).sum(dim=2, keepdim=True)


@numba.njit(cache=True, fastmath=True)
def _forward(x: Any, scale: Any, mean: Any, inverse: Any) -> None:
    nodes, width = mean.shape
    for node in range(nodes):
        for c in range(width):
            mean[node, c] = np.float32(0)
        for hop in range(len(x)):
            s, row = scale[hop, node, 0], x[hop][node]
            for c in range(width):
                mean[node, c] += s * row[c]
        square = np.float32(0)
        for c in range(width):
            square += mean[node, c] * mean[node, c]
        unit = np.float32(1) / max(np.sqrt(square), np.float32(SHORTEST))
        inverse[node, 0] = unit
        for c in range(width):
            mean[node, c] *= unit
