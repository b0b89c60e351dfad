"""The parameters of DeGEM's default, and how they turn hop features into latents, energies and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from degem.detectors.degem.terms import TERMS, TermWeights, combine
from degem.nn.hop_encoder import HopDirectionEncoder
from degem.nn.mixture_energy import MixtureEnergy
from degem.ops.energy import logit_energy

LENGTH_FLOOR = 1e-3
HOP_LENGTH_FLOOR = 1e-4
MAX_DEVIATION = 6.0


@dataclass(frozen=True)
class HopBatch:
    """What the model sees of some nodes.

    Arguments:
        hops: Projected hop features, of shape (hops, n, r + q).
        length: The length of each node's own features, before projection.
        degree: The number of neighbours.
    """

    hops: Tensor
    length: Tensor
    degree: Tensor


@dataclass(frozen=True)
class Latent:
    """A batch on its way through the model: hop directions, log-lengths, latents."""

    directions: Tensor
    log_lengths: Tensor
    latents: Tensor


class StagedModel(nn.Module):
    """Projection, encoder, critic, classifiers, energies and the scale they are combined on.

    Arguments:
        num_features: The number of feature columns d₀.
        rank: Singular directions r of the projection.
        num_random: Random directions q of the projection.
        hops: The hops that are used.
        latent_dim: The size d of the latent.
        num_classes: The number of classes C; 0 without labels.
        density_rank: Leading singular directions in which hop densities are taken.
        head_dim: Width of the energy head; 0 leaves the mixture alone.
        dropout: Dropout of the encoder.
        weights: The weights of the terms.
    """

    projection: Tensor
    length_mean: Tensor
    length_std: Tensor
    critic_direction: Tensor
    latent_mean: Tensor
    homophily: Tensor
    term_centre: Tensor
    term_scale: Tensor
    hop_means: Tensor

    def __init__(
        self,
        *,
        num_features: int,
        rank: int,
        num_random: int,
        hops: Sequence[int],
        latent_dim: int,
        num_classes: int,
        density_rank: int,
        head_dim: int,
        dropout: float,
        weights: TermWeights,
    ) -> None:
        super().__init__()
        width, components = rank + num_random, max(num_classes, 1)
        self.hops, self.density_rank, self.weights = tuple(hops), min(density_rank, rank), weights
        self.encoder = HopDirectionEncoder(width, len(hops), len(hops) + 2, latent_dim, dropout=dropout)
        self.critic = nn.Linear(latent_dim, latent_dim, bias=False)
        nn.init.eye_(self.critic.weight)
        with torch.no_grad():
            self.critic.weight.div_(latent_dim**0.5)
        self.critic_bias = nn.Parameter(torch.zeros(1))
        self.classifier = nn.Linear(latent_dim, num_classes) if num_classes else None
        self.probe = nn.Linear(len(hops) * width, num_classes) if num_classes else None
        self.latent_energy = MixtureEnergy(latent_dim, components, head_dim)
        self.length_energy = MixtureEnergy(1, 1)
        self.own_energy, self.near_energy, self.far_energy = (MixtureEnergy(self.density_rank, 1) for _ in range(3))
        self.register_buffer("projection", torch.zeros(num_features, width))
        self.register_buffer("length_mean", torch.zeros(len(hops) + 2))
        self.register_buffer("length_std", torch.ones(len(hops) + 2))
        self.register_buffer("critic_direction", torch.zeros(latent_dim))
        self.register_buffer("latent_mean", torch.zeros(latent_dim))
        self.register_buffer("homophily", torch.zeros(()))
        self.register_buffer("term_centre", torch.zeros(len(TERMS)))
        self.register_buffer("term_scale", torch.ones(len(TERMS)))
        self.register_buffer("hop_means", torch.zeros(hops[-1] + 1, components, num_features))

    @property
    def density_hops(self) -> dict[str, int]:
        """Where the hops of the terms ``own``, ``near`` and ``far`` stand among those used: 0, about 2, the last."""
        near = min(range(len(self.hops)), key=lambda place: abs(self.hops[place] - 2))
        return {"own": 0, "near": near, "far": len(self.hops) - 1}

    def encode(self, batch: HopBatch) -> Latent:
        """Directions, log-lengths and latents of a batch."""
        lengths = batch.hops.norm(dim=2)
        directions = batch.hops / (lengths[:, :, None] + 1e-8)
        own = [torch.log1p(batch.degree), torch.log(batch.length + LENGTH_FLOOR)]
        log_lengths = torch.stack([*own, *torch.log(lengths + HOP_LENGTH_FLOOR)], dim=1)
        standard = (log_lengths - self.length_mean) / self.length_std
        latents = self.encoder(directions, standard.clamp(-MAX_DEVIATION, MAX_DEVIATION))
        return Latent(directions, log_lengths, latents)

    def points(self, latent: Latent) -> Tensor:
        """The unit vectors on which the latent energy lives."""
        return F.normalize(latent.latents - self.latent_mean, dim=1, eps=1e-8)

    def energies(self, latent: Latent) -> Tensor:
        """Every term's raw energy, of shape (n, terms), in the order of :data:`~degem.detectors.degem.terms.TERMS`."""
        nothing = latent.latents.new_zeros(len(latent.latents))
        found = {
            "contrast": F.softplus(-(latent.latents @ self.critic_direction + self.critic_bias)),
            "latent": self.latent_energy(self.points(latent)),
            "classes": nothing if self.classifier is None else logit_energy(self.classifier(latent.latents)),
            "probe": nothing if self.probe is None else logit_energy(self._probe_logits(latent)),
            "length": self.length_energy(latent.log_lengths[:, 1:2]),
        }
        for name, place in self.density_hops.items():
            found[name] = getattr(self, f"{name}_energy")(latent.directions[place, :, : self.density_rank])
        return torch.stack([found[name] for name in TERMS], dim=1)

    def scores(self, energies: Tensor) -> Tensor:
        """The score of each node from its terms."""
        weights = self.weights.at(self.homophily.item())
        return combine(energies, self.term_centre, self.term_scale, weights)

    def probabilities(self, latent: Latent) -> Tensor | None:
        """Class probabilities of shape (n, C): the mean of classifier and probe; None without classes."""
        if self.classifier is None:
            return None
        by_encoder: Tensor = self.classifier(latent.latents).softmax(dim=1)
        return (by_encoder + self._probe_logits(latent).softmax(dim=1)) / 2

    def _probe_logits(self, latent: Latent) -> Tensor:
        assert self.probe is not None
        hops, _, width = latent.directions.shape
        by_hop = self.probe.weight.T.view(hops, width, -1)  # no copy of the directions, hops side by side
        return torch.bmm(latent.directions, by_hop).sum(dim=0) + self.probe.bias
