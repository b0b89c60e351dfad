"""The parameters of DeGEM, and how they turn hop features into latents, energies and classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from degem.detectors.degem.combine import NUM_LEVELS, Combination, Tail
from degem.detectors.degem.encoding import feature_rows
from degem.detectors.degem.energies import make_terms
from degem.detectors.degem.energies.base import EnergyTerm
from degem.detectors.degem.energies.classes import ClassEnergy
from degem.detectors.degem.energies.contrast import ContrastEnergy
from degem.detectors.degem.energies.latent import HeadSettings
from degem.detectors.degem.hop_batch import HopBatch, Latent
from degem.nn.degem import HopDirectionEncoder, WaveClassifier

MAX_DEVIATION = 6.0
ENCODER_TEMPERATURE = 4.0


class DeGEMModel(nn.Module):
    """Feature scales, projection, encoder, classifiers, energy terms and how these are distributed.

    Arguments:
        num_features: The number of feature columns d₀.
        width: The number of projected columns r.
        hops: The hops that are used.
        latent_dim: The size d of the latent.
        num_classes: The number of classes C; 0 without labels.
        is_table: Whether features are columns of a table.
        dropout: Dropout of the encoder.
        head: How the energy head is trained.
    """

    projection: Tensor
    length_mean: Tensor
    length_std: Tensor
    homophily: Tensor
    quantiles: Tensor
    mean_excess: Tensor
    weights: Tensor
    without_neighbours: Tensor
    isolated_share: Tensor

    def __init__(
        self,
        *,
        num_features: int,
        width: int,
        hops: Sequence[int],
        latent_dim: int,
        num_classes: int,
        is_table: bool,
        dropout: float,
        head: HeadSettings,
    ) -> None:
        super().__init__()
        lengths = len(hops) + 2
        self.hops, self.rows = tuple(hops), feature_rows(num_features, is_table)
        self.encoder = HopDirectionEncoder(width, len(hops), lengths, latent_dim, dropout=dropout)
        self.classifier = nn.Linear(latent_dim, num_classes) if num_classes else None
        self.length_classifier = WaveClassifier(lengths, num_classes) if num_classes else None
        self.terms = nn.ModuleList(
            make_terms(hops=hops, width=width, latent_dim=latent_dim, num_classes=num_classes, head=head)
        )
        count = len(self.terms)
        self.register_buffer("projection", torch.zeros(num_features, width))
        self.register_buffer("length_mean", torch.zeros(lengths))
        self.register_buffer("length_std", torch.ones(lengths))
        self.register_buffer("homophily", torch.zeros(()))
        self.register_buffer("quantiles", torch.zeros(count, NUM_LEVELS))
        self.register_buffer("mean_excess", torch.ones(count))
        self.register_buffer("weights", torch.ones(count))
        self.register_buffer("without_neighbours", torch.zeros(()))
        self.register_buffer("isolated_share", torch.ones(()))

    @property
    def energy_terms(self) -> list[EnergyTerm]:
        """The terms, in the order of the columns of :meth:`energies`."""
        return [cast(EnergyTerm, term) for term in self.terms]

    @property
    def contrast(self) -> ContrastEnergy:
        """The term whose critic is trained with the encoder."""
        return next(term for term in self.energy_terms if isinstance(term, ContrastEnergy))

    @property
    def class_term(self) -> ClassEnergy | None:
        """The term whose probe tells classes, if there are any."""
        return next((term for term in self.energy_terms if isinstance(term, ClassEnergy)), None)

    @property
    def smoothed(self) -> list[bool]:
        """Which terms are averaged over neighbours."""
        return [term.smoothed for term in self.energy_terms]

    def encode(self, batch: HopBatch) -> Latent:
        """The latents of a batch."""
        standard = (batch.log_lengths - self.length_mean) / self.length_std
        standard = standard.clamp(-MAX_DEVIATION, MAX_DEVIATION)
        latents = self.encoder(torch.bmm(batch.hops, self.encoder.hop_weight), batch.inverse_norm, standard)
        parts = (batch.hops, batch.inverse_norm, batch.log_lengths, batch.row, batch.returning)
        return Latent(*parts, latents, standard)

    def energies(self, latent: Latent) -> Tensor:
        """The energy of each term, of shape (n, terms)."""
        return torch.stack([term(latent) for term in self.energy_terms], dim=1)

    @property
    def needs_neighbours(self) -> Tensor:
        """Which terms say nothing about isolated nodes."""
        return torch.tensor([term.needs_neighbours for term in self.energy_terms], device=self.weights.device)

    @property
    def low_odds(self) -> Tensor:
        """How likely each term is too low, beside being too high."""
        return torch.tensor([term.low_odds for term in self.energy_terms], device=self.weights.device)

    @property
    def combination(self) -> Combination:
        """How the terms make one energy, as fitted."""
        return Combination(Tail(self.quantiles, self.mean_excess, self.low_odds), self.weights, self.without_neighbours)

    def combination_of(self, energies: Tensor, isolated: Tensor) -> Combination:
        """How the terms make one energy, from in-distribution nodes that they were not fitted on.

        Arguments:
            energies: The energies of each term, of shape (n, terms).
            isolated: Which of the nodes have no neighbours.
        """

        def weigh(spreads: Tensor) -> Tensor:
            homophily = self.homophily.item()
            pairs = zip(self.energy_terms, spreads.tolist(), strict=True)
            return torch.tensor([term.weight(spread, homophily) for term, spread in pairs])

        share = self.isolated_share.item()
        return Combination.of(energies, isolated, self.needs_neighbours, self.low_odds, weigh, share)

    def keep(self, combination: Combination) -> None:
        """Keep how the terms are combined."""
        self.quantiles.copy_(combination.tail.quantiles)
        self.mean_excess.copy_(combination.tail.mean_excess)
        self.weights.copy_(combination.weights)
        self.without_neighbours.copy_(combination.without_neighbours)

    def probabilities(self, latent: Latent) -> Tensor:
        """Class probabilities (n, C) of a model that has classes.

        Classes are told by the probe, at a fourth of its far surer voice by the encoder, and by lengths and degree as
        far as the graph is heterophilic. An isolated node stands in for its neighbours itself.
        """
        logits, isolated = self._class_logits(latent), latent.log_degree == 0
        if isolated.any():
            logits[isolated] = self._class_logits(self.encode(latent.by_themselves(isolated)))
        return torch.softmax(logits, dim=1)

    def _class_logits(self, latent: Latent) -> Tensor:
        assert self.classifier is not None
        assert self.length_classifier is not None
        by_encoder = self.classifier(latent.latents) / ENCODER_TEMPERATURE
        logits: Tensor = by_encoder + (1 - self.homophily) * self.length_classifier(latent.standard)
        return logits if self.class_term is None else logits + self.class_term.logits(latent)
