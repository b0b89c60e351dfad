"""From the energies of several terms to one: each as the logarithm of its tail probability, added up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from degem.detectors.degem.energies.base import Factor

TAIL, NUM_LEVELS = 0.15, 64
ONE_SIGMA = (0.16, 0.84)


@dataclass(frozen=True)
class Tail:
    r"""How the energies of a term are distributed over in-distribution nodes that it was not fitted on.

    Arguments:
        quantiles: Its quantiles at levels from 0 to 0.85, of shape (terms, levels).
        mean_excess: The mean of what energies above the last quantile exceed it by, of shape (terms,).
    """

    quantiles: Tensor
    mean_excess: Tensor

    @classmethod
    def of(cls, energies: Tensor) -> Tail:
        """The distributions of the columns of energies, of shape (n, terms).

        Example:
            >>> tail = Tail.of(torch.arange(101.0)[:, None])
            >>> tail.quantiles[0, -1].item(), tail.mean_excess.item()
            (85.0, 8.0)
        """
        quantiles = torch.quantile(energies, levels().to(energies), dim=0)
        over = (energies - quantiles[-1]).clamp_min(0)
        excess = over.sum(dim=0) / (over > 0).sum(dim=0).clamp_min(1)
        spread = (quantiles[-1] - quantiles[0]) / math.log(1 / TAIL)
        return cls(quantiles.T.contiguous(), torch.maximum(excess, 0.1 * spread).clamp_min(1e-6))

    def at(self, height: float) -> Tensor:
        """The energies whose tail probability is :math:`e^{-height}`, of shape (terms,).

        Example:
            >>> tail = Tail.of(torch.arange(101.0)[:, None])
            >>> tail.at(-math.log(0.5)).round().item(), round(tail.at(-math.log(TAIL) + 1).item(), 2)
            (50.0, 93.0)
        """
        place = (1 - math.exp(-height)) / (1 - TAIL) * (NUM_LEVELS - 1)
        low = min(int(place), NUM_LEVELS - 2)
        body = torch.lerp(self.quantiles[:, low], self.quantiles[:, low + 1], min(place - low, 1.0))
        return body + max(height + math.log(TAIL), 0.0) * self.mean_excess


def levels() -> Tensor:
    """The levels of the stored quantiles."""
    return torch.linspace(0, 1 - TAIL, NUM_LEVELS)


def log_tails(energies: Tensor, tail: Tail) -> Tensor:
    r"""Minus the logarithm of the tail probability of each energy, of shape (n, terms).

    :math:`-\log P(E' \ge E)` over in-distribution nodes :math:`E'`: between quantiles by interpolation, beyond the last
    by an exponential tail, :math:`-\log q + (E - u)/m`. Every term then has the same unit, and on in-distribution nodes
    the same distribution: exponential with mean 1.

    Arguments:
        energies: The energies of each term, of shape (n, terms).
        tail: How they are distributed.

    Example:
        >>> tail = Tail.of(torch.arange(101.0)[:, None])
        >>> log_tails(torch.tensor([[0.0], [85.0], [93.0]]), tail).flatten()
        tensor([0.0000, 1.8971, 2.8971])
    """
    heights = -torch.log1p(-levels().to(energies))
    values, quantiles = energies.T.contiguous(), tail.quantiles.to(energies)
    right = torch.searchsorted(quantiles, values.detach(), right=True).clamp(1, NUM_LEVELS - 1)
    low, high = quantiles.gather(1, right - 1), quantiles.gather(1, right)
    share = ((values - low) / (high - low).clamp_min(1e-12)).clamp(0, 1)
    body = heights[right - 1] + share * (heights[right] - heights[right - 1])
    beyond = (values - quantiles[:, -1:]).clamp_min(0) / tail.mean_excess.to(energies)[:, None]
    return (body + beyond).T


@dataclass(frozen=True)
class Combination:
    """How the terms make one energy.

    Arguments:
        tail: How the energies of each term are distributed.
        neighbourhood: How the weighted sum of the tails of the neighbourhood's terms is, of one row.
        weights: The weight of each term, of shape (terms,).
        alone: What stands for everything that needs neighbours where there are none, a number.
    """

    tail: Tail
    neighbourhood: Tail
    weights: Tensor
    alone: Tensor

    @classmethod
    def of(
        cls, energies: Tensor, isolated: Tensor, factors: Sequence[Factor], bounds: Tensor, share_isolated: float
    ) -> Combination:
        """Fit on in-distribution nodes that nothing else was fitted on.

        Arguments:
            energies: The energies of each term, of shape (n, terms).
            isolated: Which of the nodes have no neighbours.
            factors: The factor of each term.
            bounds: The least and the largest weight of each term, of shape (terms, 2).
            share_isolated: The share of isolated nodes among in-distribution nodes, above 0.
        """
        connected = energies if isolated.all() else energies[~isolated]
        own = torch.tensor([factor == "own" for factor in factors], device=energies.device)
        everywhere, around = Tail.of(energies), Tail.of(connected)
        tail = Tail(
            torch.where(own[:, None], everywhere.quantiles, around.quantiles),
            torch.where(own, everywhere.mean_excess, around.mean_excess),
        )
        low, high = torch.quantile(connected, torch.tensor(ONE_SIGMA).to(energies), dim=0)
        weights = torch.minimum(torch.maximum((high - low) / 2, bounds[:, 0]), bounds[:, 1])
        tails = weights * log_tails(connected, tail)
        neighbourhood = Tail.of(tails[:, _places(factors, "neighbourhood")].sum(dim=1, keepdim=True))
        fitted = cls(tail, neighbourhood, weights, torch.zeros(()))
        alone = Tail.of(fitted.around(tails, factors)[:, None]).at(-math.log(share_isolated))
        return replace(fitted, alone=alone[0])

    def around(self, tails: Tensor, factors: Sequence[Factor]) -> Tensor:
        """The energy of neighbourhood and tie, from weighted tails."""
        neighbourhood = tails[:, _places(factors, "neighbourhood")].sum(dim=1, keepdim=True)
        return log_tails(neighbourhood, self.neighbourhood)[:, 0] + tails[:, _places(factors, "tie")].sum(dim=1)


def combine(energies: Tensor, isolated: Tensor, factors: Sequence[Factor], fitted: Combination) -> Tensor:
    r"""One energy a node, of three factors: own features, neighbourhood, and the tie of both.

    .. math:: E = \sum_{k \in \text{own, tie}} w_k \ell_k + \ell\Big(\sum_{k \in \text{nb}} w_k \ell_k\Big),
        \qquad \ell_k = -\log P(E_k' \ge E_k)

    Fisher's sum (1932). Terms of the neighbourhood are several looks at one thing, so their sum becomes a tail
    probability again before it is added. An isolated node is, but for its own features, as strange as such nodes are
    rare: the quantile of :math:`1 -` their share, of what nodes with neighbours have, stands for the other factors.

    Arguments:
        energies: The energies of each term, of shape (n, terms).
        isolated: Which nodes have no neighbours.
        factors: The factor of each term.
        fitted: How the terms are combined.
    """
    tails = fitted.weights.to(energies) * log_tails(energies, fitted.tail)
    around = torch.where(isolated, fitted.alone.to(energies), fitted.around(tails, factors))
    return tails[:, _places(factors, "own")].sum(dim=1) + around


def _places(factors: Sequence[Factor], factor: Factor) -> list[int]:
    return [place for place, its in enumerate(factors) if its == factor]
