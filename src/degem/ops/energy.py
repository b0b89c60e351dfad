"""Energies and what trains them: low where data is dense, high where it is not."""

from __future__ import annotations

import torch
from torch import Tensor


def contrastive_divergence(data: Tensor, chains: Tensor, penalty: float) -> Tensor:
    r"""Maximum likelihood of an energy model, from data and samples of the model.

    :math:`\overline{f(h)} - \overline{f(\tilde h)} + c\,(\overline{f(h)^2} + \overline{f(\tilde h)^2})`: the first two
    terms have the gradient of the negative log-likelihood (Du & Mordatch 2019), the penalty keeps the scale.

    Arguments:
        data: Energies :math:`f(h)` of data.
        chains: Energies :math:`f(\tilde h)` of Langevin samples.
        penalty: The weight :math:`c`.

    Example:
        >>> contrastive_divergence(torch.tensor([1.0]), torch.tensor([3.0]), penalty=0.0)
        tensor(-2.)
    """
    return data.mean() - chains.mean() + penalty * (data.square().mean() + chains.square().mean())


def logit_energy(logits: Tensor, temperature: float = 1.0) -> Tensor:
    r"""The energy of a classifier, :math:`-T \log \sum_y e^{g_y / T}` (Liu et al. 2020).

    Arguments:
        logits: Class logits :math:`g`, of shape (n, C).
        temperature: The temperature :math:`T`.

    Example:
        >>> logit_energy(torch.zeros(1, 1))
        tensor([-0.])
    """
    return -temperature * torch.logsumexp(logits / temperature, dim=1)


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
