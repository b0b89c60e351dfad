"""From the energies of several terms to one: each as the logarithm of its tail probability, added up."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

TAIL, NUM_LEVELS = 0.15, 64


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


def combine(energies: Tensor, tail: Tail, needs_neighbours: Tensor, isolated: Tensor, rarity: Tensor) -> Tensor:
    r"""One energy a node, :math:`\sum_k -\log P(E_k' \ge E_k)`: Fisher's sum (1932), nothing weighed.

    Of isolated nodes the terms that need neighbours say nothing; how rare such nodes are stands for them.

    Arguments:
        energies: The energies of each term, of shape (n, terms).
        tail: How they are distributed.
        needs_neighbours: Which terms need neighbours.
        isolated: Which nodes have none.
        rarity: Minus the log-share of isolated nodes among training nodes.
    """
    tails = log_tails(energies, tail)
    neighbours = needs_neighbours.to(tails)
    without = tails @ (1 - neighbours) + torch.maximum(rarity.to(tails), neighbours.sum())
    return torch.where(isolated, without, tails.sum(dim=1))
