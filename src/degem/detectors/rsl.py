"""A classifier of outliers that are found by how little they move, and of others made up around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from degem.detectors.energydef import EnergyDef
from degem.detectors.split import TrainingSet
from degem.nn.gpr_energy import GPREnergy
from degem.parameters import Count, Fraction, NonNegative, Positive
from degem.training import History, OnProgress, evaluating, seeded

if TYPE_CHECKING:
    from degem.nn.encoders_gnn import GraphTensors

RESONANCE_RATE = 0.01
SMALLEST = 1e-4  # probabilities are kept this far from 0 and 1


@dataclass(kw_only=True, eq=False)
class RSL(EnergyDef):
    r"""Resonance-based separation and learning (Yang et al., NeurIPS 2025). It needs no labels.

    *Resonance*: a linear map, its output of unit length, is trained to send every training node to one arbitrary unit
    vector. Unknown ID nodes move along; the nodes that move least in the last step, among those of the training graph
    that are not known to be ID, are taken for outliers. *Learning*: the network of
    :class:`~degem.detectors.energydef.EnergyDef` tells the training nodes from such as have made-up features

    .. math:: x \leftarrow 2\alpha (x - \eta \nabla f + \sigma\epsilon) + 2 (1 - \alpha) (\bar x_{out} - x)

    and from the found outliers, by cross-entropies whose two classes weigh the same; the score is the logit. Settings
    are the authors' for WikiCS. They choose the steps of resonance by dataset and the epoch on validation nodes, OOD
    ones among them; here both are fixed. Where every node is known to be ID the outliers are found among those.

    Arguments:
        resonance_steps: Steps of the linear map.
        num_outliers: Nodes taken for outliers.
        outlier_weight: Weight of their cross-entropy.
        energy_share: The share :math:`\alpha` of the Langevin step in a made-up feature.

    The others are those of :class:`~degem.detectors.energydef.EnergyDef`.
    """

    resonance_steps: Count = 47
    num_outliers: Count = 1
    outlier_weight: NonNegative = 1.0
    energy_share: Fraction = 0.5
    learning_rate: Positive = 0.01

    name = "rsl"

    slope = 0.01

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        unknown = np.setdiff1d(np.arange(training.graph.num_nodes), training.nodes)
        candidates = torch.from_numpy(unknown if len(unknown) else training.nodes)
        with seeded(training.seed):
            movement = self._resonance(training)[candidates]
        least = movement.argsort(stable=True)[: self.num_outliers]
        self.outliers_ = candidates[least].to(self.device)
        return super()._fit(training, on_progress)

    def _resonance(self, training: TrainingSet) -> Tensor:
        """How far the last step moves the output of each node."""
        features = self._tensors(training.graph).features
        known = features.to_dense()[torch.from_numpy(training.nodes).to(self.device)]
        layer = nn.Linear(self.num_features_, self.num_features_).to(self.device)
        target = functional.normalize(torch.randn(self.num_features_), dim=0).to(self.device)
        optimiser = torch.optim.Adam(layer.parameters(), lr=RESONANCE_RATE)
        before = features
        for step in range(self.resonance_steps):
            if step == self.resonance_steps - 1:
                with torch.no_grad():
                    before = functional.normalize(layer(features))
            optimiser.zero_grad()
            (functional.normalize(layer(known)) - target).square().sum().backward()
            optimiser.step()
        with torch.no_grad():
            moved: Tensor = (functional.normalize(layer(features)) - before).norm(dim=1)
        return moved

    def _sample(self, network: GPREnergy, inputs: GraphTensors, replaced: Tensor, generator: torch.Generator) -> Tensor:
        gradient, share = self._gradient(network, inputs, replaced), self.energy_share
        centre = inputs.features.to_dense()[self.outliers_].mean(dim=0)
        x = torch.zeros(len(replaced), self.num_features_, device=self.device)
        with evaluating(network):
            for _ in range(self.num_steps):
                noise = self.noise_std * torch.randn(x.shape, generator=generator, device=self.device)
                x = 2 * share * (x - self.step_size * gradient(x) + noise) + 2 * (1 - share) * (centre - x)
        return x

    def _losses(self, energies: Tensor, known: Tensor, replaced: Tensor) -> dict[str, Tensor]:
        outlying = energies.sigmoid().clamp(SMALLEST, 1 - SMALLEST)
        return {
            "classification": -(1 - outlying[known]).log().mean() - outlying[replaced].log().mean(),
            "outliers": -self.outlier_weight * outlying[self.outliers_].log().mean(),
        }
