"""From the energies of several terms to one: each as the logarithm of its tail probability, added up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

TAIL, NUM_LEVELS = 0.15, 64
LEAST_EXCESS = 0.01  # nats: a term that is constant over held-out nodes would else drown the others
ONE_SIGMA = (0.16, 0.84)


@dataclass(frozen=True)
class Tail:
    r"""How the energies of a term are distributed over in-distribution nodes that it was not fitted on.

    Arguments:
        quantiles: Its quantiles at levels from 0 to 0.85, of shape (terms, levels).
        mean_excess: The mean of what energies above the last quantile exceed it by, of shape (terms,).
        low_odds: How likely, beside an energy that is too high, one is that is too low, of shape (terms,); none is.
    """

    quantiles: Tensor
    mean_excess: Tensor
    low_odds: Tensor | None = None

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
        return cls(quantiles.T.contiguous(), torch.maximum(excess, 0.1 * spread).clamp_min(LEAST_EXCESS))

    def at(self, height: float) -> Tensor:
        """The energies whose tail probability is :math:`e^{-height}`, of shape (terms,).

        Example:
            >>> tail = Tail.of(torch.arange(101.0)[:, None])
            >>> tail.at(-math.log(0.5)).round().item(), round(tail.at(-math.log(TAIL) + 1).item(), 2)
            (50.0, 93.0)
        """
        position = (1 - math.exp(-height)) / (1 - TAIL) * (NUM_LEVELS - 1)
        low = min(int(position), NUM_LEVELS - 2)
        body = torch.lerp(self.quantiles[:, low], self.quantiles[:, low + 1], min(position - low, 1.0))
        return body + max(height + math.log(TAIL), 0.0) * self.mean_excess


def levels() -> Tensor:
    """The levels of the stored quantiles."""
    return torch.linspace(0, 1 - TAIL, NUM_LEVELS)


def log_tails(energies: Tensor, tail: Tail) -> Tensor:
    r"""Minus the logarithm of the tail probability of each energy, of shape (n, terms).

    :math:`-\log P(E' \ge E)` over in-distribution nodes :math:`E'`: between quantiles by interpolation, beyond the last
    by an exponential tail, :math:`-\log q + (E - u)/m`. Every term then has the same unit, and on in-distribution nodes
    the same distribution: exponential with mean 1. With odds :math:`c` that it is too low, a term has the larger one of
    that and :math:`-\log P(E' \le E) + \log c`.

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
    before, after = quantiles.gather(1, right - 1), quantiles.gather(1, right)
    share = ((values - before) / (after - before).clamp_min(1e-12)).clamp(0, 1)
    body = heights[right - 1] + share * (heights[right] - heights[right - 1])
    high = body + (values - quantiles[:, -1:]).clamp_min(0) / tail.mean_excess.to(energies)[:, None]
    if tail.low_odds is None:
        return high.T
    level = (right - 1 + share) / (NUM_LEVELS - 1) * (1 - TAIL)
    low = torch.log(tail.low_odds.to(energies))[:, None] - torch.log(level.clamp_min((1 - TAIL) / NUM_LEVELS))
    return torch.maximum(high, low).T


@dataclass(frozen=True)
class Combination:
    """How the terms make one energy.

    Arguments:
        tail: How the energies of each term are distributed.
        weights: The weight of each term, of shape (terms,).
        without_neighbours: What stands for the terms that need neighbours where there are none, a number.
    """

    tail: Tail
    weights: Tensor
    without_neighbours: Tensor

    @classmethod
    def of(
        cls,
        energies: Tensor,
        isolated: Tensor,
        needs: Tensor,
        low_odds: Tensor,
        weigh: Callable[[Tensor], Tensor],
        share_isolated: float,
    ) -> Self:
        """Fit on in-distribution nodes that nothing else was fitted on.

        Arguments:
            energies: The energies of each term, of shape (n, terms).
            isolated: Which of the nodes have no neighbours.
            needs: Which terms need neighbours.
            low_odds: See :class:`Tail`.
            weigh: Gives the weights of the terms, by how far the energies of each spread.
            share_isolated: The share of isolated nodes among in-distribution nodes, above 0.
        """
        connected = energies if isolated.all() else energies[~isolated]
        everywhere, around = Tail.of(energies), Tail.of(connected)
        tail = Tail(
            torch.where(needs[:, None], around.quantiles, everywhere.quantiles),
            torch.where(needs, around.mean_excess, everywhere.mean_excess),
            low_odds,
        )
        low, high = torch.quantile(connected, torch.tensor(ONE_SIGMA).to(energies), dim=0)
        weights = weigh((high - low) / 2).to(energies)
        sums = log_tails(connected, tail) @ (weights * needs)
        return cls(tail, weights, Tail.of(sums[:, None]).at(-math.log(min(max(share_isolated, 1e-12), 1.0)))[0])

    def parts(self, energies: Tensor) -> Tensor:
        """What each term adds to the score of a node that has neighbours, of shape (n, terms)."""
        return self.weights.to(energies) * log_tails(energies, self.tail)


def combine(energies: Tensor, isolated: Tensor, needs: Tensor, fitted: Combination) -> Tensor:
    r"""One energy a node, :math:`\sum_k -w_k \log P(E_k' \ge E_k)`: Fisher's sum (1932), weighted.

    An isolated node is, but for its own features, as strange as such nodes are rare: the quantile of :math:`1 -` their
    share, of what nodes with neighbours have as the sum of their other terms, stands for those.

    Arguments:
        energies: The energies of each term, of shape (n, terms).
        isolated: Which nodes have no neighbours.
        needs: Which terms need neighbours.
        fitted: How the terms are combined.
    """
    tails = fitted.parts(energies)
    neighbours = needs.to(tails)
    around = torch.where(isolated, fitted.without_neighbours.to(energies), tails @ neighbours)
    return tails @ (1 - neighbours) + around
