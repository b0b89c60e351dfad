"""Langevin sampling, as a function of positions, a gradient, settings and a generator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from degem.parameters import Count, Fraction, NonNegative, Positive


@dataclass(frozen=True, kw_only=True)
class LangevinSettings:
    r"""How chains move and where they start.

    Arguments:
        num_steps: Steps :math:`K` a chain takes each time.
        step_size: Step size :math:`\lambda`.
        noise_std: Standard deviation :math:`\sigma` of the noise of one step.
        num_chains: Chains :math:`M`; by default as many as training nodes in a step.
        buffer_factor: Size of the replay buffer, in multiples of :math:`M`.
        fresh_share: Share of chains that start anew instead of from the replay buffer.
        start: Fresh chains are uniform in a cube (:math:`[-1, 1]^d`) or standard normal.
    """

    num_steps: Count = 20
    step_size: Positive = 1.0
    noise_std: NonNegative = 0.005
    num_chains: Count | None = None
    buffer_factor: Count = 2
    fresh_share: Fraction = 0.05
    start: Literal["uniform", "normal"] = "uniform"


def langevin(
    positions: Tensor,
    gradient: Callable[[Tensor], Tensor],
    settings: LangevinSettings,
    generator: torch.Generator,
) -> Tensor:
    r"""Move chains :math:`K` steps, :math:`\tilde h \leftarrow \tilde h - \lambda \nabla f(\tilde h) + \sigma\epsilon`.

    Arguments:
        positions: Where the chains stand, of shape :math:`(M, d)`; left as they are.
        gradient: The gradient :math:`\nabla f` of the energy, of the same shape as its argument.
        settings: :math:`K`, :math:`\lambda` and :math:`\sigma`.
        generator: Source of the noise :math:`\epsilon \sim \mathcal{N}(0, I)`.

    Example:
        >>> start = torch.ones(1, 2)
        >>> settings = LangevinSettings(num_steps=1, step_size=0.5, noise_std=0.0)
        >>> langevin(start, lambda h: h, settings, torch.Generator())
        tensor([[0.5000, 0.5000]])
    """
    moved = positions.clone()
    noise = torch.empty_like(moved)
    for _ in range(settings.num_steps):
        moved = moved.add_(gradient(moved), alpha=-settings.step_size)
        if settings.noise_std > 0:
            moved.add_(noise.normal_(generator=generator), alpha=settings.noise_std)
    return moved


def langevin_along(
    basis: Tensor,
    positions: Tensor,
    gradient: Callable[[Tensor], Tensor],
    settings: LangevinSettings,
    generator: torch.Generator,
) -> Tensor:
    r"""Langevin sampling of an energy that changes only along a few directions, :math:`f(h) = f(Q Q^\top h)`.

    Chains have the distribution that :func:`langevin` gives them, but only their coordinates :math:`u = Q^\top h` take
    the :math:`K` steps. Across them nothing but noise happens, whose sum is one draw of standard deviation
    :math:`\sigma\sqrt{K}`. The cost follows the number :math:`k` of directions instead of :math:`d`.

    Arguments:
        basis: The directions :math:`Q`: orthonormal columns, of shape :math:`(d, k)`.
        positions: Where the chains stand, of shape :math:`(M, d)`; left as they are.
        gradient: The gradient of the energy by :math:`u`, from :math:`(M, k)` to :math:`(M, k)`.
        settings: :math:`K`, :math:`\lambda` and :math:`\sigma`.
        generator: Source of the noise.

    Example:
        >>> basis = torch.tensor([[1.0], [0.0]])
        >>> settings = LangevinSettings(num_steps=1, step_size=0.5, noise_std=0.0)
        >>> langevin_along(basis, torch.ones(1, 2), lambda u: u, settings, torch.Generator())
        tensor([[0.5000, 1.0000]])
    """
    start = positions @ basis
    end = langevin(start, gradient, settings, generator)
    noise = torch.empty_like(positions).normal_(generator=generator).mul_(settings.noise_std * settings.num_steps**0.5)
    along = end - start - noise @ basis
    return noise.add_(positions).addmm_(along, basis.T)


def fresh_chains(count: int, dim: int, settings: LangevinSettings, generator: torch.Generator) -> Tensor:
    """Starting points of new chains, of shape (count, dim)."""
    if settings.start == "normal":
        return torch.randn(count, dim, generator=generator, device=generator.device)
    return 2 * torch.rand(count, dim, generator=generator, device=generator.device) - 1


def replayed_chains(
    buffer: Tensor, count: int, settings: LangevinSettings, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Starting points from the replay buffer, a share of them fresh, and the buffer rows they came from.

    Arguments:
        buffer: Where earlier chains ended, of shape (B, d); left as it is.
        count: How many chains to start.
        settings: The share of fresh ones and where those start.
        generator: Source of the choice.
    """
    rows = torch.randperm(len(buffer), generator=generator, device=buffer.device)[:count]
    fresh = torch.rand(len(rows), 1, generator=generator, device=buffer.device) < settings.fresh_share
    chains = torch.where(fresh, fresh_chains(len(rows), buffer.shape[1], settings, generator), buffer[rows])
    return chains, rows
