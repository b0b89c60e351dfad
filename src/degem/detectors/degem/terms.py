"""The terms of DeGEM's energy, and how homophily weighs them against each other."""

from __future__ import annotations

import math
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
        length: The density of the length of the node's own features.
        own: The density of the direction of the node's own features.
        near: The same two hops away.
        far: The same at the last hop.
        prototypes: How far the mean direction of all hops points away from those of the classes.
    """

    contrast: Weight = (6.0, 3.0)
    latent: Weight = (0.25, 1.25)
    classes: Weight = (1.0, 3.0)
    probe: Weight = (0.5, 3.0)
    length: Weight = (1.25, 0.0)
    own: Weight = (1.0, 1.0)
    near: Weight = (0.0, 1.0)
    far: Weight = (0.5, 0.5)
    prototypes: Weight = (0.0, 4.0)

    def at(self, homophily: float) -> Tensor:
        """The weight of each term, in the order of the fields.

        Example:
            >>> TermWeights().at(0.5)[:2]
            tensor([4.5000, 0.7500])
        """
        pairs = [getattr(self, field.name) for field in fields(self)]
        return torch.tensor([(1 - homophily) * pair[0] + homophily * pair[1] for pair in pairs])


TERMS = tuple(field.name for field in fields(TermWeights))
# The critic's term and the length say nothing about neighbours; a mean over hops is an average over them already.
SMOOTHED = torch.tensor([name not in ("contrast", "length", "prototypes") for name in TERMS])
# Densities of what comes from neighbours: averages over many of them can lie closer to the middle than any node should.
TWO_SIDED = torch.tensor([name in ("latent", "near", "far") for name in TERMS])
# What a node without neighbours can be judged by: the other terms are about a neighbourhood.
OWN = torch.tensor([name in ("length", "own") for name in TERMS])
RARE, STEEPNESS = 0.05, 2.0
NUM_LEVELS, HALVINGS = 24, 0.5


@dataclass(frozen=True)
class Scale:
    """What each term is like on in-distribution nodes.

    Arguments:
        centre: Where it lies, :math:`m_k`.
        width: How wide it is, :math:`s_k`.
        low: Its quantiles at the rare levels, from the lowest, of shape (terms, levels).
    """

    centre: Tensor
    width: Tensor
    low: Tensor

    @classmethod
    def of(cls, energies: Tensor) -> Scale:
        """Median, half the central 68 % and low quantiles of each column.

        The critic's term is a log-probability already and keeps its scale.

        Example:
            >>> Scale.of(torch.arange(101.0)[:, None].expand(101, len(TERMS))).centre
            tensor([ 0., 50., 50., 50., 50., 50., 50., 50., 50.])
        """
        low, centre, high = torch.quantile(energies, energies.new_tensor([0.16, 0.5, 0.84]), dim=0)
        width = ((high - low) / 2).clamp_min(1e-6)
        places = torch.ceil(rare_levels().to(energies) * (len(energies) + 1) - 0.5).long()
        rare = energies.sort(dim=0).values[(places - 1).clamp_min(0)]
        rare[places <= 0] = -torch.inf  # rarer than so few nodes can show
        own = TERMS.index("contrast")
        centre[own], width[own] = 0.0, 1.0
        return cls(centre, width, rare.T.contiguous())


def rare_levels() -> Tensor:
    """Levels from 5 % down in equal ratios, the lowest first."""
    return RARE * 2.0 ** (-HALVINGS * torch.arange(NUM_LEVELS - 1, -1, -1))


def combine(energies: Tensor, scale: Scale, weights: Tensor) -> Tensor:
    r"""One energy, :math:`\sum_k w_k\,\bigl(\psi((E_k - m_k)/s_k) + 2\,[\log(q / F_k(E_k))]_+\bigr)`.

    :math:`\psi(z) = \mathrm{sign}(z)\log(1 + |z|)` keeps a term that is far out from silencing the others. The second
    part makes densities two-sided: where fewer than :math:`q` = 5 % of in-distribution nodes have an energy as low,
    :math:`F_k(E_k) < q`, a node is too typical to be typical (Nalisnick et al. 2019).

    Arguments:
        energies: The terms :math:`E_k`, of shape (n, terms).
        scale: What they are like on in-distribution nodes.
        weights: The weights :math:`w_k`.
    """
    z = (energies - scale.centre) / scale.width
    common = torch.sign(z) * torch.log1p(z.abs())
    passed = NUM_LEVELS - torch.searchsorted(scale.low[TWO_SIDED], energies[:, TWO_SIDED].T.contiguous())
    common[:, TWO_SIDED] += STEEPNESS * HALVINGS * math.log(2) * passed.T
    return common @ weights.to(z.device)


def energy_alone(energies: Tensor, share: float, scale: Scale, weights: Tensor) -> Tensor:
    r"""What the terms of a neighbourhood add up to at a node that has none: it is as strange as it is rare.

    Where a share :math:`\pi` of in-distribution nodes has no neighbours, that is the quantile :math:`1 - \pi` of what
    others have. Infinite where nobody is alone, or nobody else known: what the terms say of no neighbours then stands.

    Arguments:
        energies: The terms of in-distribution nodes with neighbours that were not trained on, of shape (n, terms).
        share: The share :math:`\pi` of training nodes without neighbours.
        scale: What the terms are like on training nodes.
        weights: The weights of the terms.

    Example:
        >>> energies = torch.arange(101.0)[:, None].expand(101, len(TERMS))
        >>> scale, weights = Scale.of(energies), torch.ones(len(TERMS))
        >>> rare, common = (energy_alone(energies, share, scale, weights) for share in (0.05, 0.5))
        >>> bool(rare > common)
        True
    """
    if share == 0 or len(energies) == 0:
        return energies.new_tensor(torch.inf)
    return torch.quantile(combine(energies, scale, weights * ~OWN), 1 - share)
