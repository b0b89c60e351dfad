"""The terms of DeGEM's energy, and how homophily weighs them against each other."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

Weight = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class TermWeights:
    r"""What each term weighs on a heterophilic and on a homophilic graph; in between they are mixed by :math:`\eta`.

    :math:`w = (1 - \eta)\,w_{het} + \eta\,w_{hom}`, :math:`\eta` the homophily of the training labels beyond chance.
    Where neighbours share classes, classes are what the graph is about; where they do not, the node's own features are.

    Arguments:
        contrast: How sure the contrastive critic is that a node was corrupted, :math:`-\log D(h, s)`.
        latent: The energy of the latent: mixture base and head trained by maximum likelihood.
        classes: The energy of the class logits of the encoder.
        probe: The energy of the class logits of a linear probe on the hop directions.
        length: The energy of the length of the node's own features, two-sided.
        own: The density of the direction of the node's own features.
        near: The same two hops away.
        far: The same at the last hop.
    """

    contrast: Weight = (6.0, 6.0)
    latent: Weight = (0.25, 2.25)
    classes: Weight = (0.0, 2.0)
    probe: Weight = (0.0, 2.0)
    length: Weight = (1.0, 0.0)
    own: Weight = (1.0, 0.0)
    near: Weight = (0.25, 0.25)
    far: Weight = (0.5, 0.5)

    def at(self, homophily: float) -> Tensor:
        """The weight of each term, in the order of the fields.

        Example:
            >>> TermWeights().at(0.5)[:2]
            tensor([6.0000, 1.2500])
        """
        pairs = [getattr(self, field.name) for field in fields(self)]
        return torch.tensor([(1 - homophily) * pair[0] + homophily * pair[1] for pair in pairs])


TERMS = tuple(field.name for field in fields(TermWeights))
# The critic's term is a log-probability already and keeps its scale; it and the length say nothing about neighbours.
UNSCALED = torch.tensor([name == "contrast" for name in TERMS])
SMOOTHED = torch.tensor([name not in ("contrast", "length") for name in TERMS])


def robust_scale(energies: Tensor) -> tuple[Tensor, Tensor]:
    """Median and half the central 68 % of each column: where in-distribution energies lie and how wide.

    Example:
        >>> robust_scale(torch.arange(101.0)[:, None])
        (tensor([50.]), tensor([34.]))
    """
    low, middle, high = torch.quantile(energies, energies.new_tensor([0.16, 0.5, 0.84]), dim=0)
    return middle, ((high - low) / 2).clamp_min(1e-6)


def combine(energies: Tensor, centre: Tensor, scale: Tensor, weights: Tensor) -> Tensor:
    r"""One energy, :math:`\sum_k w_k\,\psi((E_k - m_k)/s_k)` with :math:`\psi(z) = \mathrm{sign}(z)\log(1 + |z|)`.

    The logarithm keeps a term that is far out from silencing the others.

    Arguments:
        energies: The terms :math:`E_k`, of shape (n, terms).
        centre: Where each lies on in-distribution nodes, :math:`m_k`.
        scale: How wide it is there, :math:`s_k`.
        weights: The weights :math:`w_k`.
    """
    z = (energies - centre) / scale
    common = torch.where(UNSCALED.to(z.device), energies, torch.sign(z) * torch.log1p(z.abs()))
    return common @ weights.to(z.device)
