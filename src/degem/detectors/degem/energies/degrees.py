"""How likely the ends of a node's edges are, whoever they are: edges of a real graph prefer well-connected nodes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from degem.detectors.degem.energies.base import EnergyTerm, TrainingRows
from degem.detectors.degem.hop_batch import Latent

FLOOR = 1e-9


class DegreesEnergy(EnergyTerm):
    r"""The logarithm of :math:`\overline{1/d_u}`, the mean over neighbours :math:`u`, :math:`d_u` their degrees.

    Under the configuration model an edge ends at :math:`u` with probability :math:`d_u / 2m` (Newman 2003), so this is,
    but for a constant, minus the logarithm of how likely the ends are, averaged as probabilities' inverses are. There
    is nothing to fit. Edges drawn with no regard to that end at nodes of few edges too often; new nodes that join
    nothing but hubs, as late papers do, have too low an energy.
    """

    name = "degrees"
    low_odds = math.exp(-2)

    def fit(self, rows: TrainingRows) -> None:
        """Nothing is learnt."""

    def forward(self, latent: Latent) -> Tensor:
        """The energy of each row."""
        return torch.log(latent.returning + FLOOR)
