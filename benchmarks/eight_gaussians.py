"""The paper's toy figure: which energy recovers a density, one trained by maximum likelihood or one of class logits?

python benchmarks/eight_gaussians.py docs/figures
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor, nn

from degem.nn.degem_published import MLPEnergy
from degem.ops.langevin import LangevinSettings, fresh_chains, langevin, replayed_chains
from degem.ops.losses import contrastive_divergence, logit_energy

RADIUS, SPREAD, EXTENT = 2.0, 0.3, 3.5
HIDDEN, BATCH, NUM_STEPS = 256, 512, 2000
LANGEVIN = LangevinSettings(step_size=0.05, noise_std=math.sqrt(2 * 0.05), num_chains=BATCH, start="normal")

Energy = Callable[[Tensor], Tensor]


def eight_gaussians(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Points from eight Gaussians on a circle, and which of the eight each came from.

    Example:
        >>> points, modes = eight_gaussians(5, torch.Generator().manual_seed(0))
        >>> points.shape, modes.shape
        (torch.Size([5, 2]), torch.Size([5]))
    """
    modes = torch.randint(8, (count,), generator=generator)
    return _centres()[modes] + SPREAD * torch.randn(count, 2, generator=generator), modes


def true_energy(points: Tensor) -> Tensor:
    """Minus the log-density of the mixture, up to a constant."""
    distances = torch.cdist(points, _centres()).square()
    return -torch.logsumexp(-distances / (2 * SPREAD**2), dim=1)


def train_likelihood_energy(num_steps: int, seed: int) -> Energy:
    """An energy head trained on the points alone, by maximum likelihood with Langevin sampling."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = MLPEnergy(2, HIDDEN, condition_weight=0.0)
    optimizer = torch.optim.Adam(head.parameters(), lr=5e-3, betas=(0.5, 0.999))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, num_steps)
    buffer, nothing = fresh_chains(LANGEVIN.buffer_factor * BATCH, 2, LANGEVIN, generator), torch.empty(0)
    for _ in range(num_steps):
        points, _ = eight_gaussians(BATCH, generator)
        chains, rows = replayed_chains(buffer, BATCH, LANGEVIN, generator)
        chains = langevin(chains, lambda x: head.gradient(x, nothing), LANGEVIN, generator)
        buffer[rows] = chains
        optimizer.zero_grad()
        contrastive_divergence(head(points, nothing), head(chains, nothing), penalty=1e-3).backward()
        optimizer.step()
        schedule.step()
    return lambda x: head(x, nothing).detach()


def train_logit_energy(num_steps: int, seed: int) -> Energy:
    """The energy of the logits of a classifier that tells the eight modes apart, of the same width."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        classifier = nn.Sequential(nn.Linear(2, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 8))
    optimizer = torch.optim.Adam(classifier.parameters(), lr=5e-3)
    for _ in range(num_steps):
        points, modes = eight_gaussians(BATCH, generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(classifier(points), modes).backward()
        optimizer.step()
    return lambda x: logit_energy(classifier(x)).detach()


def density_on_grid(energy: Energy, resolution: int = 80) -> NDArray[np.float64]:
    """The density that an energy stands for, normalised over a square grid."""
    axis = torch.linspace(-EXTENT, EXTENT, resolution)
    grid = torch.cartesian_prod(axis, axis)
    density = torch.softmax(-energy(grid).double(), dim=0)
    return density.reshape(resolution, resolution).numpy()


def total_variation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    r"""The total variation :math:`\frac12 \sum |p - q|` of two densities: 0 where equal, 1 where disjoint.

    Example:
        >>> total_variation(np.array([0.5, 0.5]), np.array([1.0, 0.0]))
        0.5
    """
    return float(np.abs(first - second).sum() / 2)


def _centres() -> Tensor:
    angles = torch.arange(8) * (math.pi / 4)
    return RADIUS * torch.stack([angles.cos(), angles.sin()], dim=1)


def figure(num_steps: int, seed: int = 0) -> Figure:
    """Eight Gaussians: the true density, the one of the energy trained by likelihood, and the one of class logits."""
    densities = {
        "true density": density_on_grid(true_energy),
        "energy by maximum likelihood": density_on_grid(train_likelihood_energy(num_steps, seed)),
        "energy of class logits": density_on_grid(train_logit_energy(num_steps, seed)),
    }
    truth = densities["true density"]
    drawn = Figure(figsize=(9, 3.7), layout="constrained")
    for axes, (name, density) in zip(drawn.subplots(1, 3), densities.items(), strict=True):
        axes.imshow(density.T, origin="lower", extent=(-EXTENT, EXTENT) * 2, cmap="viridis")
        distance = total_variation(truth, density)
        axes.set_title(name if density is truth else f"{name}\ntotal variation {distance:.2f}", fontsize=9)
        axes.set_axis_off()
    return drawn


def main(folder: Path) -> None:
    """Draw the figure as PNG and SVG."""
    drawn = figure(NUM_STEPS)
    with mpl.rc_context({"svg.hashsalt": "degem", "svg.fonttype": "none"}):
        drawn.savefig(folder / "eight-gaussians.png", dpi=150)
        drawn.savefig(folder / "eight-gaussians.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
