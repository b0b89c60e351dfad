"""How usual the latent is: an energy trained by maximum likelihood with Langevin sampling, the paper's idea."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from degem.detectors.degem.energies.base import EnergyTerm, TrainingRows
from degem.detectors.degem.hop_batch import Latent
from degem.nn.degem import MixtureEnergy
from degem.ops.estimates import fit_mixture
from degem.ops.langevin import LangevinSettings, langevin
from degem.ops.losses import contrastive_divergence

HEAD_DIM, NUM_STEPS, BATCH, LEARNING_RATE, AVERAGING = 64, 50, 256, 2e-3, 0.95
STEP_SIZE = 0.05
CHAINS_AT_TEMPERATURE_ONE = LangevinSettings(
    num_steps=5, step_size=STEP_SIZE, noise_std=math.sqrt(2 * STEP_SIZE), num_chains=256, start="normal"
)


@dataclass(frozen=True)
class HeadSettings:
    """How the head is trained.

    Arguments:
        energy_penalty: The weight c of the squared energies.
        langevin: The sampler.
    """

    energy_penalty: float = 0.1
    langevin: LangevinSettings = CHAINS_AT_TEMPERATURE_ONE


class LatentEnergy(EnergyTerm):
    r"""The energy :math:`E(u) = E_{base}(u) + f(u)` of the latent's direction :math:`u`.

    The base is a mixture of one Gaussian a class; the head :math:`f` learns by maximum likelihood what it leaves over.
    Chains follow :math:`E` at temperature 1 in the whitened space, start from the base and persist; the weights that
    score are a running average.

    Arguments:
        latent_dim: The size :math:`d` of the latent.
        num_components: The number of classes, at least 1.
        settings: How the head is trained.
    """

    name = "latent"
    mean: Tensor

    def __init__(self, latent_dim: int, num_components: int, settings: HeadSettings) -> None:
        super().__init__()
        self.energy, self.settings = MixtureEnergy(latent_dim, num_components, HEAD_DIM), settings
        self.register_buffer("mean", torch.zeros(latent_dim))

    def fit(self, rows: TrainingRows) -> None:
        """Fit on the latents of training nodes."""
        self.fit_latents(rows.train_latent.latents, rows.labels, rows.generator)

    def forward(self, latent: Latent) -> Tensor:
        """The energy of each row."""
        return self.energy_of(latent.latents)

    def fit_latents(self, latents: Tensor, labels: NDArray[np.int64], generator: torch.Generator) -> None:
        """Fit the base in closed form, then the head by contrastive divergence.

        Arguments:
            latents: Latents of shape (n, d).
            labels: The class of each, −1 where unknown.
            generator: Source of randomness.
        """
        with torch.no_grad():
            self.mean.copy_(latents.mean(dim=0))
            points = self._points(latents)
            classes = labels if (labels >= 0).all() else None
            self.energy.set_base(fit_mixture(points.double().cpu().numpy(), classes))
            whitened = self.energy.whiten(points)
        self._train(whitened, generator)

    def energy_of(self, latents: Tensor) -> Tensor:
        """The energy of each latent."""
        energy: Tensor = self.energy(self._points(latents))
        return energy

    def _points(self, latents: Tensor) -> Tensor:
        return F.normalize(latents - self.mean, dim=1, eps=1e-8)

    def _train(self, points: Tensor, generator: torch.Generator) -> None:
        energy, sampler = self.energy, self.settings.langevin
        assert energy.hidden is not None
        trained = [energy.hidden.weight, energy.hidden.bias, energy.slope]
        average = [parameter.detach().clone() for parameter in trained]
        optimizer = torch.optim.Adam(trained, lr=LEARNING_RATE)
        chains = energy.sample_base(sampler.num_chains or BATCH, generator)
        for _ in range(NUM_STEPS):
            moved = langevin(chains, energy.gradient, sampler, generator)
            fresh = torch.rand(len(moved), 1, generator=generator, device=moved.device) < sampler.fresh_share
            chains = torch.where(fresh, energy.sample_base(len(moved), generator), moved)
            rows = torch.randperm(len(points), generator=generator, device=points.device)[:BATCH]
            optimizer.zero_grad()
            loss = contrastive_divergence(
                energy.residual(points[rows]), energy.residual(chains), self.settings.energy_penalty
            )
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                energy.hidden.weight.div_(torch.linalg.matrix_norm(energy.hidden.weight, 2).clamp_min(1))
                for kept, parameter in zip(average, trained, strict=True):
                    kept.lerp_(parameter, 1 - AVERAGING)
        with torch.no_grad():
            for kept, parameter in zip(average, trained, strict=True):
                parameter.copy_(kept)
