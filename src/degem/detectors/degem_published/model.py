"""The parameters of the published DeGEM, and how they turn hop features into latents, energies and class logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from degem.nn.degem_published import Discriminator, MLPEnergy, MultiHopEncoder, OneLayerEncoder
from degem.ops.losses import logit_energy
from degem.propagation.hop_products import HopProducts

if TYPE_CHECKING:
    from degem.detectors.degem_published.detector import DeGEMPublished

HEAD_DIM = 64


class PublishedModel(nn.Module):
    """Encoder g, critic D, energy head f and classifier I; the summary s is a buffer.

    Arguments:
        settings: The sizes and switches.
        num_features: The number of feature columns d₀.
        num_classes: The number of classes C; 0 without labels.
    """

    summary: Tensor

    def __init__(self, settings: DeGEMPublished, num_features: int, num_classes: int) -> None:
        super().__init__()
        dim, release = settings.latent_dim, settings.version == "release"
        self.energy_kind = settings.energy
        self.encoder: MultiHopEncoder | OneLayerEncoder = (
            MultiHopEncoder(num_features, settings.num_hops, dim, dropout=settings.dropout, release=release)
            if settings.multi_hop
            else OneLayerEncoder(num_features, dim)
        )
        self.head = MLPEnergy(
            dim,
            HEAD_DIM,
            condition_weight=settings.condition_weight,
            batch_norm=release,
            dropout=settings.dropout if release else 0.0,
        )
        self.classifier = nn.Linear(dim, num_classes) if num_classes else None
        self.critic = Discriminator(dim, bias=release) if settings.contrast == "dgi" else None
        self.projector = (
            nn.Sequential(nn.Linear(dim, dim), nn.ELU(), nn.Linear(dim, dim)) if settings.contrast == "grace" else None
        )
        self.anchor = nn.Linear(num_features, dim) if settings.contrast == "sugrl" else None
        self.register_buffer("summary", torch.zeros(dim))

    def products(self, graph: HopProducts) -> Tensor:
        """What the encoder makes latents of: a graph's hop features times its projection, of shape (hops, n, d)."""
        return graph.times(self.encoder.projection, self.encoder.hops)

    def latents(self, graph: HopProducts) -> Tensor:
        """Latents h of every node, of shape (n, d)."""
        latents: Tensor = self.encoder(self.products(graph))
        return latents

    def energies(self, latents: Tensor) -> Tensor:
        """The score of each latent: f(h, s), or the energy of the class logits."""
        if self.energy_kind == "logits" and self.classifier is not None:
            return logit_energy(self.classifier(latents))
        energies: Tensor = self.head(latents, self.summary)
        return energies

    def probabilities(self, latents: Tensor) -> Tensor | None:
        """Class probabilities of shape (n, C), or None without classes."""
        return None if self.classifier is None else torch.softmax(self.classifier(latents), dim=1)
