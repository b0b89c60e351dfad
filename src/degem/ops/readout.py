"""The summary of a graph: a weighted mean of its latents."""

from __future__ import annotations

import torch
from torch import Tensor


def energy_readout(latents: Tensor, energies: Tensor, energy_weight: float) -> Tensor:
    r"""The summary :math:`s = \sum_i (\gamma \bar p_i + (1 - \gamma)/N) h_i`, :math:`\bar p = \mathrm{softmax}(-f)`.

    Arguments:
        latents: Latents :math:`h`, of shape :math:`(N, d)`.
        energies: Their energies :math:`f`, of shape :math:`(N,)`.
        energy_weight: The weight :math:`\gamma`; 0 is the plain mean.

    Example:
        >>> energy_readout(torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 0.0]), 1.0)
        tensor([0.5000])
    """
    weights = energy_weight * torch.softmax(-energies, dim=0) + (1 - energy_weight) / len(latents)
    return weights @ latents
