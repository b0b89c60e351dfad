"""The parameters of DeGEM, and how they turn hop features into latents, energies and class logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from degem.nn.encoders import MultiHopEncoder, OneLayerEncoder
from degem.nn.heads import BilinearEnergy, Discriminator, MLPEnergy
from degem.ops.energy import logit_energy
from degem.ops.hop_products import HopProducts

Contrast = Literal["none", "dgi", "grace", "sugrl"]


@dataclass(frozen=True)
class ModelShape:
    """What the modules' sizes follow from; the rest are switches of :class:`~degem.DeGEM`."""

    in_dim: int
    num_hops: int
    latent_dim: int
    num_classes: int
    dropout: float
    multi_hop: bool
    linear_hops: bool
    contrast: Contrast
    head: Literal["mlp", "bilinear"]
    head_dim: int
    head_batch_norm: bool
    condition_weight: float
    energy: Literal["mle", "logits"]


class DeGEMModel(nn.Module):
    """Encoder g, critic D, energy head f and classifier I; the summary s and the hop means by class are buffers.

    Arguments:
        shape: The sizes and switches.
    """

    summary: Tensor
    hop_means: Tensor

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        dim = shape.latent_dim
        self.energy_kind = shape.energy
        self.encoder: MultiHopEncoder | OneLayerEncoder = (
            MultiHopEncoder(shape.in_dim, shape.num_hops, dim, dropout=shape.dropout, linear=shape.linear_hops)
            if shape.multi_hop
            else OneLayerEncoder(shape.in_dim, dim)
        )
        self.head: MLPEnergy | BilinearEnergy = (
            MLPEnergy(dim, shape.head_dim, condition_weight=shape.condition_weight, batch_norm=shape.head_batch_norm)
            if shape.head == "mlp"
            else BilinearEnergy(dim)
        )
        self.classifier = nn.Linear(dim, shape.num_classes) if shape.num_classes else None
        self.critic = Discriminator(dim) if shape.contrast == "dgi" else None
        self.projector = (
            nn.Sequential(nn.Linear(dim, dim), nn.ELU(), nn.Linear(dim, dim)) if shape.contrast == "grace" else None
        )
        self.anchor = nn.Linear(shape.in_dim, dim) if shape.contrast == "sugrl" else None
        self.register_buffer("summary", torch.zeros(dim))
        self.register_buffer("hop_means", torch.zeros(shape.num_hops + 1, max(shape.num_classes, 1), shape.in_dim))

    def latents(self, hops: Tensor) -> Tensor:
        """Latents h of shape (n, d) from hop features of shape (L + 1, n, r)."""
        encoded: Tensor = self.encoder(hops)
        return encoded

    def products(self, graph: HopProducts) -> Tensor:
        """What the encoder makes latents of: a graph's hop features times its projection, of shape (hops, n, d)."""
        return graph.times(self.encoder.projection, self.encoder.hops)

    def energies(self, latents: Tensor) -> Tensor:
        """The score of each latent: f(h, s), or the energy of the class logits."""
        if self.energy_kind == "logits" and self.classifier is not None:
            return logit_energy(self.classifier(latents))
        energies: Tensor = self.head(latents, self.summary)
        return energies

    def probabilities(self, latents: Tensor) -> Tensor | None:
        """Class probabilities of shape (n, C), or None without classes."""
        return None if self.classifier is None else torch.softmax(self.classifier(latents), dim=1)
