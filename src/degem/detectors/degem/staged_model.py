"""The parameters of DeGEM's default, and how they turn hop features into latents, energies and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from degem.detectors.degem.terms import NUM_LEVELS, OWN, TERMS, Scale, TermWeights, combine, energy_alone
from degem.nn.hop_encoder import HopDirectionEncoder
from degem.nn.mixture_energy import MixtureEnergy
from degem.nn.prototype_energy import PrototypeEnergy
from degem.nn.wave_classifier import WaveClassifier
from degem.ops.density import NUM_KERNELS
from degem.ops.energy import logit_energy
from degem.ops.mean_direction import mean_direction

LENGTH_FLOOR = 1e-3
HOP_LENGTH_FLOOR = 1e-4
MAX_DEVIATION = 6.0
ENCODER_TEMPERATURE = 4.0


@dataclass(frozen=True)
class HopBatch:
    """What the model sees of some nodes.

    Arguments:
        hops: Projected hop features, each node's over the root of its degree, of shape (hops, n, r + q).
        shrinkage: What makes directions of them, 1 / length, of shape (hops, n, 1).
        log_lengths: Log-degree, log-length of the node's own features and of each hop, of shape (n, hops + 2).
    """

    hops: Tensor
    shrinkage: Tensor
    log_lengths: Tensor

    @classmethod
    def of(cls, hops: Tensor, length: Tensor, degree: Tensor) -> HopBatch:
        """A batch from what it sees, lengths of nodes' own features before projection, and degrees."""
        lengths = hops.norm(dim=2)
        own = torch.stack([torch.log1p(degree), torch.log(length + LENGTH_FLOOR)])
        log_lengths = torch.cat([own, torch.log(lengths * degree.clamp_min(1).sqrt() + HOP_LENGTH_FLOOR)]).T
        return cls(hops, 1 / (lengths[:, :, None] + 1e-8), log_lengths)

    def directions(self, hop: int, width: int | None = None) -> Tensor:
        """Where the first ``width`` columns of one hop point."""
        return self.hops[hop, :, :width] * self.shrinkage[hop]

    def by_themselves(self, nodes: Tensor) -> HopBatch:
        """Some nodes with their own features in the place of every hop's."""
        hops, shrinkage = (part[:1, nodes].repeat(len(self.hops), 1, 1) for part in (self.hops, self.shrinkage))
        return HopBatch(hops, shrinkage, self.log_lengths[nodes])

    def mean_directions(self) -> Tensor:
        """The mean of where all hops point, scaled to length 1, of shape (n, r + q)."""
        return mean_direction(self.hops, self.shrinkage)


@dataclass(frozen=True)
class Latent(HopBatch):
    """A batch on its way through the model.

    Arguments:
        latents: The latents, of shape (n, d).
        standard: The log-lengths in standard deviations from their means, of shape (n, hops + 2).
        probe_logits: Class logits of the linear probe, of shape (n, C); None while training and without classes.
    """

    latents: Tensor
    standard: Tensor
    probe_logits: Tensor | None


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
    term_width: Tensor
    term_low: Tensor
    energy_alone: Tensor
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
        components = max(num_classes, 1)
        rank, num_random = projection_size(num_features, rank, num_random)
        width = rank + num_random
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
        self.length_energy = MixtureEnergy(1, NUM_KERNELS)
        self.own_energy, self.near_energy, self.far_energy = (
            MixtureEnergy(self.density_rank, components) for _ in range(3)
        )
        self.prototype_energy = PrototypeEnergy(width, components)
        self.length_classifier = WaveClassifier(len(hops) + 2, num_classes) if num_classes else None
        self.register_buffer("projection", torch.zeros(num_features, width))
        self.register_buffer("length_mean", torch.zeros(len(hops) + 2))
        self.register_buffer("length_std", torch.ones(len(hops) + 2))
        self.register_buffer("critic_direction", torch.zeros(latent_dim))
        self.register_buffer("latent_mean", torch.zeros(latent_dim))
        self.register_buffer("homophily", torch.zeros(()))
        self.register_buffer("term_centre", torch.zeros(len(TERMS)))
        self.register_buffer("term_width", torch.ones(len(TERMS)))
        self.register_buffer("term_low", torch.zeros(len(TERMS), NUM_LEVELS))
        self.register_buffer("energy_alone", torch.tensor(torch.inf))
        self.register_buffer("hop_means", torch.zeros(hops[-1] + 1, components, num_features))

    @property
    def density_hops(self) -> dict[str, int]:
        """Where the hops of the terms ``own``, ``near`` and ``far`` stand among those used: 0, about 2, the last."""
        near = min(range(len(self.hops)), key=lambda place: abs(self.hops[place] - 2))
        return {"own": 0, "near": near, "far": len(self.hops) - 1}

    def encode(self, batch: HopBatch) -> Latent:
        """The latents of a batch."""
        standard = (batch.log_lengths - self.length_mean) / self.length_std
        standard = standard.clamp(-MAX_DEVIATION, MAX_DEVIATION)
        if self.training or self.probe is None:
            products, probe_logits = torch.bmm(batch.hops, self.encoder.hop_weight), None
        else:  # the hops are read once for both
            by_hop = self.probe.weight.T.view(len(self.hops), batch.hops.shape[2], -1)
            dim, num_classes = self.encoder.hop_weight.shape[2], by_hop.shape[2]
            by_hop = F.pad(by_hop, (0, -(dim + num_classes) % 8))  # odd widths take up to half as long again
            joint = torch.bmm(batch.hops, torch.cat([self.encoder.hop_weight, by_hop], dim=2))
            products, for_probe, _ = joint.tensor_split([dim, dim + num_classes], dim=2)
            probe_logits = (for_probe * batch.shrinkage).sum(dim=0) + self.probe.bias
        latents = self.encoder(products, batch.shrinkage, standard)
        return Latent(batch.hops, batch.shrinkage, batch.log_lengths, latents, standard, probe_logits)

    def points(self, latent: Latent) -> Tensor:
        """The unit vectors on which the latent energy lives."""
        return F.normalize(latent.latents - self.latent_mean, dim=1, eps=1e-8)

    def energies(self, latent: Latent) -> Tensor:
        """The terms (n, terms) before they are scaled, in the order of :data:`~degem.detectors.degem.terms.TERMS`."""
        found = {
            "contrast": F.softplus(-(latent.latents @ self.critic_direction + self.critic_bias)),
            "latent": self.latent_energy(self.points(latent)),
            "length": self.length_energy(latent.log_lengths[:, 1:2]),
        }
        for name, place in self.density_hops.items():
            found[name] = getattr(self, f"{name}_energy")(latent.directions(place, self.density_rank))
        if self.classifier is None or latent.probe_logits is None:
            found |= dict.fromkeys(("classes", "probe", "prototypes"), torch.zeros_like(found["contrast"]))
        else:
            found["classes"] = logit_energy(self.classifier(latent.latents))
            found["probe"] = logit_energy(latent.probe_logits)
            found["prototypes"] = self.prototype_energy(latent.mean_directions())
        return torch.stack([found[name] for name in TERMS], dim=1)

    def probabilities(self, latent: Latent) -> Tensor:
        """Class probabilities (n, C) of a model that has classes.

        Classes are told by the probe, at a fourth of its far surer voice by the encoder, and by lengths and degree as
        far as the graph is heterophilic. A node without neighbours stands in for them itself.
        """
        logits, alone = self._class_logits(latent), latent.log_lengths[:, 0] == 0
        if alone.any():
            logits[alone] = self._class_logits(self.encode(latent.by_themselves(alone)))
        return torch.softmax(logits, dim=1)

    def _class_logits(self, latent: Latent) -> Tensor:
        assert self.classifier is not None
        assert self.length_classifier is not None
        assert latent.probe_logits is not None
        by_encoder = self.classifier(latent.latents) / ENCODER_TEMPERATURE
        by_length = (1 - self.homophily) * self.length_classifier(latent.standard)
        logits: Tensor = latent.probe_logits + by_encoder + by_length
        return logits

    def scores(self, energies: Tensor, alone: Tensor) -> Tensor:
        """The score of each node from its terms, and whether it is ``alone``, without neighbours."""
        scores = combine(energies, self._scale, self._weights)
        if self.energy_alone.isfinite() and alone.any():
            scores[alone] = combine(energies[alone], self._scale, self._weights * OWN) + self.energy_alone
        return scores

    def set_scale(self, energies: Tensor) -> None:
        """Take the scale of the terms from in-distribution nodes."""
        scale = Scale.of(energies)
        self.term_centre.copy_(scale.centre)
        self.term_width.copy_(scale.width)
        self.term_low.copy_(scale.low)

    def set_alone(self, energies: Tensor, share: float) -> None:
        """How strange it is to be alone, see :func:`~degem.detectors.degem.terms.energy_alone`."""
        self.energy_alone.copy_(energy_alone(energies, share, self._scale, self._weights))

    @property
    def _scale(self) -> Scale:
        return Scale(self.term_centre, self.term_width, self.term_low)

    @property
    def _weights(self) -> Tensor:
        return self.weights.at(self.homophily.item())


def projection_size(num_features: int, rank: int, num_random: int) -> tuple[int, int]:
    """Singular and random directions to take: where the first span all features, nothing is left for the second.

    Example:
        >>> projection_size(1433, 256, 32), projection_size(128, 256, 32)
        ((256, 32), (128, 0))
    """
    return (num_features, 0) if num_features <= rank else (rank, num_random)
