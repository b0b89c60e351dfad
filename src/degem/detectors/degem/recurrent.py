"""DeGEM as published: encoder and energy head trained together by the recurrent update, full batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from degem.detectors.base import Scored
from degem.detectors.degem.recurrent_model import DeGEMModel, ModelShape
from degem.detectors.degem.recurrent_trainer import Trainer, TrainingSettings
from degem.detectors.degem.recurrent_views import Views
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.ops.features import row_normalize, to_tensor
from degem.ops.hop_products import hop_products
from degem.ops.hop_rows import class_hop_means, hop_rows
from degem.ops.score_propagation import propagate_energy
from degem.seeding import seeded
from degem.training import History, OnProgress, train

if TYPE_CHECKING:
    from degem.detectors.degem.detector import DeGEM

BLOCK = 1 << 14
PROPAGATION_STEPS, PROPAGATION_SELF_WEIGHT = 2, 0.5


class Recurrent:
    """The paper's Algorithm 1.

    Arguments:
        settings: The parameters.
        num_features: The number of feature columns d₀.
        num_classes: The number of classes C; 0 without labels.
    """

    def __init__(self, settings: DeGEM, num_features: int, num_classes: int) -> None:
        self.settings = settings
        sizes = {"in_dim": num_features, "num_classes": num_classes}
        shape = {field.name: getattr(settings, field.name, None) for field in dataclasses.fields(ModelShape)}
        with seeded(settings.seed):
            self.module = DeGEMModel(ModelShape(**{**shape, **sizes})).to(settings.device)  # type: ignore[arg-type]

    def fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        """Train encoder and head together."""
        settings = self.settings
        chosen = {field.name: getattr(settings, field.name) for field in dataclasses.fields(TrainingSettings)}
        generator = torch.Generator(settings.device).manual_seed(settings.seed)
        views = Views(
            training.graph.adjacency,
            self._scaled(training.graph),
            settings.num_hops,
            self_weight=settings.self_weight,
            contrast=settings.contrast,
            refresh_every=settings.refresh_every,
            rng=np.random.default_rng(settings.seed),
        )
        with seeded(settings.seed + 1):
            trainer = Trainer(
                self.module, views, training.nodes, training.graph.labels, TrainingSettings(**chosen), generator
            )
            history = train(trainer.step, settings.num_epochs, on_progress=on_progress)
        trainer.summarise()
        means = class_hop_means(
            training.graph.adjacency,
            lambda rows: views.features[rows],
            training.graph.labels,
            training.nodes,
            settings.num_hops,
            settings.self_weight,
        )
        self.module.hop_means.copy_(torch.from_numpy(means))
        return history

    @torch.no_grad()
    def score(self, graph: Graph) -> Scored:
        """Energies, propagated if asked for, and class probabilities."""
        energies, probabilities = [], []
        for latents in self._latent_blocks(graph):
            energies.append(self.module.energies(latents).cpu())
            block = self.module.probabilities(latents)
            if block is not None:
                probabilities.append(block.cpu())
        energy = torch.cat(energies)
        if self.settings.energy_propagation:
            energy = propagate_energy(
                energy,
                to_tensor(graph.adjacency),
                num_steps=PROPAGATION_STEPS,
                self_weight=PROPAGATION_SELF_WEIGHT,
            )
        return Scored(energy.numpy(), torch.cat(probabilities).numpy() if probabilities else None)

    @torch.no_grad()
    def embed(self, graph: Graph) -> NDArray[np.float32]:
        """Latents of every node."""
        return torch.cat([latents.cpu() for latents in self._latent_blocks(graph)]).numpy()

    @torch.no_grad()
    def embed_some(self, graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Latents of some nodes."""
        self.module.eval()
        return self.module.latents(torch.stack(self.hop_rows(graph, nodes))).cpu().numpy()

    def hop_rows(self, graph: Graph, nodes: NDArray[np.int64]) -> list[torch.Tensor]:
        """Hop features 0 … L of some nodes."""
        settings = self.settings
        rows = hop_rows(graph.adjacency, self._scaled(graph), nodes, settings.num_hops, settings.self_weight)
        return [torch.from_numpy(hop).to(settings.device) for hop in rows]

    def score_from_hops(self, hops: list[torch.Tensor]) -> torch.Tensor:
        """Energies from hop features, before any propagation of energies."""
        self.module.eval()
        return self.module.energies(self.module.latents(torch.stack(hops)))

    def hop_reference(self) -> list[torch.Tensor]:
        """Mean hop features of each class."""
        return list(self.module.hop_means)

    def _latent_blocks(self, graph: Graph) -> Iterator[torch.Tensor]:
        self.module.eval()
        settings = self.settings
        whole = hop_products(graph.adjacency, self._scaled(graph), settings.num_hops, self_weight=settings.self_weight)
        for block in self.module.products(whole).split(BLOCK, dim=1):
            yield self.module.encoder.latents(block)

    def _scaled(self, graph: Graph) -> NDArray[np.float32] | sp.csr_array:
        return row_normalize(graph.features) if self.settings.normalize_features else graph.features
