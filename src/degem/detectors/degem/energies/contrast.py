"""Whether the graph around a node is real, as the critic of the encoder's training sees it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from degem.detectors.degem.energies.base import EnergyTerm, TrainingRows
from degem.detectors.degem.hop_batch import Latent


class ContrastEnergy(EnergyTerm):
    r"""How sure the critic of Deep Graph Infomax is that a node was corrupted, :math:`-(h^\top W s + b)` in nats.

    The critic is trained together with the encoder (Veličković et al. 2019); :math:`s` is the summary of the graph.

    Arguments:
        latent_dim: The size :math:`d` of the latent.
    """

    name = "contrast"
    direction: Tensor

    def __init__(self, latent_dim: int) -> None:
        super().__init__()
        self.critic = nn.Linear(latent_dim, latent_dim, bias=False)
        nn.init.eye_(self.critic.weight)
        with torch.no_grad():
            self.critic.weight.div_(latent_dim**0.5)
        self.bias = nn.Parameter(torch.zeros(1))
        self.register_buffer("direction", torch.zeros(latent_dim))

    def logits(self, latents: Tensor, summary: Tensor) -> Tensor:
        """How sure the critic is that latents are of the real graph, given the mean latent of it."""
        logits: Tensor = latents @ self.critic(torch.sigmoid(summary)) + self.bias
        return logits

    @torch.no_grad()
    def fit(self, rows: TrainingRows) -> None:
        """Keep the direction that the summary gives; the critic is trained already."""
        self.direction.copy_(self.critic(torch.sigmoid(rows.latent.latents.mean(dim=0))))

    def forward(self, latent: Latent) -> Tensor:
        """The energy of each row."""
        return -(latent.latents @ self.direction + self.bias)
