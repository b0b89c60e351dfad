"""The second stage of DeGEM's default: energies on what the trained encoder sees of the training nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from degem.checkpoint import Part
from degem.detectors.degem.staged_model import Latent, StagedModel
from degem.detectors.degem.terms import TERMS
from degem.nn.adam import Adam
from degem.nn.mixture_energy import MixtureEnergy
from degem.ops.density import fit_kernels, fit_mixture
from degem.ops.energy import contrastive_divergence
from degem.ops.langevin import LangevinSettings, langevin
from degem.ops.logistic import fit_logistic

PROBE_PENALTY, PROBE_PRIOR, LENGTH_PRIOR = 3e-4, 0.02, 0.03
HEAD_BATCH, HEAD_LEARNING_RATE, HEAD_AVERAGING = 256, 2e-3, 0.95


def fit_classifiers(model: StagedModel, latent: Latent, labels: NDArray[np.int64]) -> None:
    """Logistic regressions of the classes: on hop directions, and on waves of the lengths beside the classes' shares.

    Arguments:
        model: The model whose probe and length classifier are set.
        latent: Training nodes on their way through the model.
        labels: Their labels, −1 where unknown.
    """
    known = labels >= 0
    if model.probe is None or model.length_classifier is None or len(np.unique(labels[known])) < 2:
        return
    labels = labels[known]
    directions = (latent.hops * latent.shrinkage).transpose(0, 1).flatten(1).cpu().numpy()[known]
    weight, bias = fit_logistic(directions, labels, probe_penalty(len(labels), model.homophily.item()))
    _set_linear(model.probe, weight, bias)
    waves = model.length_classifier.waves(latent.standard).cpu().numpy()[known]
    weight, bias = fit_logistic(waves, labels, LENGTH_PRIOR / len(labels))
    _set_linear(model.length_classifier.linear, weight, bias - np.log(np.bincount(labels) / len(labels)))


def probe_penalty(num_labels: int, homophily: float) -> float:
    r"""The penalty of the probe, :math:`(1 - \eta)\,\lambda + \eta \min(\lambda, \lambda_0 / n)`.

    Where neighbours share classes more labels can tell more apart; elsewhere directions hold too little for that.

    Arguments:
        num_labels: The number of labels :math:`n`.
        homophily: The homophily :math:`\eta`.

    Example:
        >>> probe_penalty(100, 1.0), probe_penalty(1000, 1.0), probe_penalty(1000, 0.0)
        (0.0002, 2e-05, 0.0003)
    """
    return (1 - homophily) * PROBE_PENALTY + homophily * min(PROBE_PENALTY, PROBE_PRIOR / num_labels)


def _set_linear(linear: nn.Linear, weight: NDArray[np.float64], bias: NDArray[np.float64]) -> None:
    linear.weight.copy_(torch.from_numpy(weight))
    linear.bias.copy_(torch.from_numpy(bias))


def fit_densities(model: StagedModel, latent: Latent, labels: NDArray[np.int64]) -> dict[str, Tensor]:
    """Every closed-form density, fitted on training nodes.

    Arguments:
        model: The model whose densities are set.
        latent: Training nodes on their way through the model.
        labels: Their labels, −1 where unknown.

    Returns:
        By term, the energies of the training nodes, each under a density fitted without it.
    """
    model.latent_mean.copy_(latent.latents.mean(dim=0))
    classes = labels if (labels >= 0).all() else None
    clouds = {"latent": model.points(latent)}
    for name, place in model.density_hops.items():
        clouds[name] = latent.directions(place, model.density_rank)
    found = {name: fit_mixture(points.double().cpu().numpy(), classes) for name, points in clouds.items()}
    found["length"] = fit_kernels(latent.log_lengths[:, 1].double().cpu().numpy())
    left_out = {}
    for name, mixture in found.items():
        getattr(model, f"{name}_energy").set_base(mixture)
        left_out[name] = torch.from_numpy(mixture.left_out).to(latent.latents)
    return left_out


@dataclass(frozen=True)
class HeadSettings:
    """How the head is trained; see :class:`~degem.DeGEM`."""

    energy_penalty: float
    langevin: LangevinSettings


class HeadTrainer:
    r"""Maximum likelihood of the latent energy: the head learns what the mixture under it leaves over.

    Chains follow :math:`E = E_{base} + f` at temperature 1 in the whitened space, start from the base and persist.
    The weights that score are a running average.

    Arguments:
        energy: The latent energy, its base set.
        points: The latents of training nodes, not whitened.
        settings: The penalty and the sampler.
        generator: Source of batches and chains.
    """

    def __init__(
        self, energy: MixtureEnergy, points: Tensor, settings: HeadSettings, generator: torch.Generator
    ) -> None:
        assert energy.hidden is not None
        self.energy, self.hidden, self.settings, self.generator = energy, energy.hidden, settings, generator
        self.points = energy.whiten(points)
        chains = settings.langevin.num_chains or HEAD_BATCH
        self.chains = energy.sample_base(chains, generator)
        self.trained = [energy.hidden.weight, energy.hidden.bias, energy.slope]
        self.average = [parameter.detach().clone() for parameter in self.trained]
        self.optimizer = Adam(self.trained, lr=HEAD_LEARNING_RATE)

    @property
    def parts(self) -> dict[str, Part]:
        """Everything that a step changes."""
        averages = {f"average {index}": tensor for index, tensor in enumerate(self.average)}
        changed: dict[str, Part] = {"energy": self.energy, "optimizer": self.optimizer, "chains": self.chains}
        return changed | averages | {"generator": self.generator}

    def step(self, index: int) -> Mapping[str, float]:
        """Move the chains, then step the head on data against chains."""
        sampler = self.settings.langevin
        moved = langevin(self.chains, self.energy.gradient, sampler, self.generator)
        fresh = torch.rand(len(moved), 1, generator=self.generator, device=moved.device)
        restarted = self.energy.sample_base(len(moved), self.generator)
        self.chains.copy_(torch.where(fresh < sampler.fresh_share, restarted, moved))
        rows = torch.randperm(len(self.points), generator=self.generator, device=self.points.device)[:HEAD_BATCH]
        self.optimizer.zero_grad()
        loss = contrastive_divergence(
            self.energy.residual(self.points[rows]), self.energy.residual(self.chains), self.settings.energy_penalty
        )
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            self.hidden.weight.div_(torch.linalg.matrix_norm(self.hidden.weight, 2).clamp_min(1))
            for kept, parameter in zip(self.average, self.trained, strict=True):
                kept.lerp_(parameter, 1 - HEAD_AVERAGING)
        return {"energy": loss.item()}

    @torch.no_grad()
    def finish(self) -> None:
        """Put the running average in the place of the last weights."""
        for kept, parameter in zip(self.average, self.trained, strict=True):
            parameter.copy_(kept)


def replace_terms(energies: Tensor, rows: NDArray[np.int64], columns: Mapping[str, Tensor]) -> Tensor:
    """Energies where some rows of some terms have other values.

    Example:
        >>> replace_terms(torch.zeros(2, len(TERMS)), np.array([1]), {"latent": torch.ones(1)})[:, 1]
        tensor([0., 1.])
    """
    changed = energies.clone()
    for name, values in columns.items():
        changed[torch.from_numpy(rows), TERMS.index(name)] = values
    return changed
