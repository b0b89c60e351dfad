"""Classes from a few numbers, by more than straight lines."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

NUM_WAVES, BANDWIDTH = 128, 2.0


class WaveClassifier(nn.Module):
    r"""Logits :math:`W \sqrt{2/m}\,\cos(\Omega z / h + \varphi) + b`: logistic regression under a Gaussian kernel.

    The random waves stand for a kernel of bandwidth :math:`h` (Rahimi & Recht, *Random Features for Large-Scale Kernel
    Machines*, NeurIPS 2007). They are bounded, so a point far from all others cannot be ever surer of its class.

    Arguments:
        in_dim: The number of columns of :math:`z`.
        num_classes: The number of classes C.
        num_waves: The number of waves :math:`m`.
        bandwidth: The bandwidth :math:`h`.

    Example:
        >>> WaveClassifier(8, 3)(torch.zeros(5, 8)).shape
        torch.Size([5, 3])
    """

    frequency: Tensor
    phase: Tensor

    def __init__(
        self, in_dim: int, num_classes: int, *, num_waves: int = NUM_WAVES, bandwidth: float = BANDWIDTH
    ) -> None:
        super().__init__()
        self.register_buffer("frequency", torch.randn(in_dim, num_waves) / bandwidth)
        self.register_buffer("phase", 2 * math.pi * torch.rand(num_waves))
        self.linear = nn.Linear(num_waves, num_classes)

    def waves(self, points: Tensor) -> Tensor:
        """The waves at points of shape (n, in_dim), of shape (n, m)."""
        scale = math.sqrt(2 / len(self.phase))
        return scale * torch.addmm(self.phase, points, self.frequency).cos_()

    def forward(self, points: Tensor) -> Tensor:
        """Logits of shape (n, C)."""
        logits: Tensor = self.linear(self.waves(points))
        return logits
