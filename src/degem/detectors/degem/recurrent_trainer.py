"""One training run of DeGEM: the recurrent update of energy head and encoder, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from degem.detectors.degem.recurrent_model import DeGEMModel
from degem.detectors.degem.recurrent_views import Views
from degem.nn.adam import Adam
from degem.ops.contrast import grace_loss, infomax_loss, sugrl_loss
from degem.ops.energy import contrastive_divergence
from degem.ops.langevin import LangevinSettings, fresh_chains, replayed_chains
from degem.ops.readout import energy_readout


@dataclass(frozen=True)
class TrainingSettings:
    """The weights of the losses and the sizes of the steps; see :class:`~degem.DeGEM`."""

    batch_size: int | None
    learning_rate: float
    weight_decay: float
    classification_weight: float
    energy_readout_weight: float
    energy_penalty: float
    langevin: LangevinSettings


class Trainer:
    """The state of a run: the model, its optimisers, the replay buffer and the energies of the last visit to each node.

    Arguments:
        model: The modules to train, in place.
        views: The graph and its corrupted or augmented copies.
        train_nodes: The in-distribution nodes.
        labels: A label for every node, −1 where unknown.
        settings: Loss weights and step sizes.
        generator: Source of batches, chains and noise.
    """

    def __init__(
        self,
        model: DeGEMModel,
        views: Views,
        train_nodes: NDArray[np.int64],
        labels: NDArray[np.int64],
        settings: TrainingSettings,
        generator: torch.Generator,
    ) -> None:
        device = model.summary.device
        self.model, self.views, self.settings, self.generator = model, views, settings, generator
        self.train_nodes = torch.from_numpy(train_nodes).to(device)
        self.labels = torch.from_numpy(labels.copy()).to(device)
        self.node_energies = torch.zeros(views.num_nodes, device=device)
        chains = settings.langevin.num_chains or len(self._some(self.train_nodes))
        self.buffer = fresh_chains(
            settings.langevin.buffer_factor * chains, model.summary.shape[0], settings.langevin, generator
        )
        head = list(model.head.parameters())
        rest = [parameter for name, parameter in model.named_parameters() if not name.startswith("head.")]
        rate, decay = settings.learning_rate, settings.weight_decay
        self.head_optimizer = Adam(head, lr=rate, weight_decay=decay)
        self.encoder_optimizer = Adam(rest, lr=rate, weight_decay=decay)

    def step(self, index: int) -> Mapping[str, float]:
        """One iteration: sample chains, step the energy head, recompute the summary, step the encoder."""
        self.model.train()
        nodes = self._some(torch.arange(self.views.num_nodes, device=self.train_nodes.device))
        train = self._some(self.train_nodes)
        self.views.refresh(index)
        products = self.model.products(self.views.graph)
        latents = self._latents(products, nodes)
        train_latents = latents[train] if len(nodes) == self.views.num_nodes else self._latents(products, train)
        energy_loss = self._step_head(latents.detach(), train_latents.detach(), nodes)
        losses = self._step_encoder(latents, train_latents, nodes, train)
        return {"energy": energy_loss, **losses}

    @torch.no_grad()
    def summarise(self) -> None:
        """Set the model's summary s from every node of the graph, as scoring needs it."""
        self.model.eval()
        latents = self.model.encoder.latents(self.model.products(self.views.graph))
        self.model.summary.copy_(energy_readout(latents, self.node_energies, self.settings.energy_readout_weight))

    def _step_head(self, latents: Tensor, train_latents: Tensor, nodes: Tensor) -> float:
        """Step the head on mean f(h) − mean f(h̃) + c·(…), given the summary under the previous energies."""
        weight = self.settings.energy_readout_weight
        summary = energy_readout(latents, self.node_energies[nodes], weight)
        chains = self._sample(summary)
        self.head_optimizer.zero_grad()
        loss = contrastive_divergence(
            self.model.head(train_latents, summary), self.model.head(chains, summary), self.settings.energy_penalty
        )
        loss.backward()
        self.head_optimizer.step()
        with torch.no_grad():
            self.node_energies[nodes] = self.model.head(latents, summary)
        return loss.item()

    def _sample(self, summary: Tensor) -> Tensor:
        """Chains moved K steps; where they end goes back into the buffer."""
        settings = self.settings.langevin
        count = len(self.buffer) // settings.buffer_factor
        chains, rows = replayed_chains(self.buffer, count, settings, self.generator)
        chains = self.model.head.sample(chains, summary, settings, self.generator)
        self.buffer[rows] = chains
        return chains

    def _step_encoder(self, latents: Tensor, train_latents: Tensor, nodes: Tensor, train: Tensor) -> dict[str, float]:
        """Step encoder, critic and classifier on the contrastive loss + ξ · cross-entropy."""
        summary = energy_readout(latents, self.node_energies[nodes], self.settings.energy_readout_weight)
        self.model.summary.copy_(summary.detach())
        losses: dict[str, Tensor] = {}
        contrast = self._contrast(latents, summary, nodes)
        if contrast is not None:
            losses["contrast"] = contrast
        labels = self.labels[train]
        if self.model.classifier is not None and (labels >= 0).any() and self.settings.classification_weight:
            losses["classification"] = F.cross_entropy(self.model.classifier(train_latents), labels, ignore_index=-1)
        if losses:
            weights = {"contrast": 1.0, "classification": self.settings.classification_weight}
            self.encoder_optimizer.zero_grad()
            torch.stack([weights[name] * loss for name, loss in losses.items()]).sum().backward()
            self.encoder_optimizer.step()
        return {name: loss.item() for name, loss in losses.items()}

    def _contrast(self, latents: Tensor, summary: Tensor, nodes: Tensor) -> Tensor | None:
        model = self.model
        if model.critic is not None:
            corrupted = self._latents(model.products(self.views.copies[0]), nodes)
            return infomax_loss(model.critic(latents, summary), model.critic(corrupted, summary))
        if model.projector is not None:
            first, second = (self._latents(model.products(view), nodes) for view in self.views.copies)
            return grace_loss(model.projector(first), model.projector(second))
        if model.anchor is not None:
            both = self.views.graph.times(model.anchor.weight.T.expand(2, -1, -1), range(2))
            anchor, neighbour = F.relu(self._rows(both, nodes) + model.anchor.bias)
            shuffled = anchor[torch.randperm(len(anchor), generator=self.generator, device=anchor.device)]
            return sugrl_loss(anchor, latents, neighbour, shuffled)
        return None

    def _latents(self, products: Tensor, nodes: Tensor) -> Tensor:
        return self.model.encoder.latents(self._rows(products, nodes))

    def _rows(self, products: Tensor, nodes: Tensor) -> Tensor:
        return products if len(nodes) == self.views.num_nodes else products[:, nodes]

    def _some(self, nodes: Tensor) -> Tensor:
        """A random batch of nodes, or all of them where the batch is as large."""
        size = self.settings.batch_size
        if size is None or size >= len(nodes):
            return nodes
        return nodes[torch.randint(len(nodes), (size,), generator=self.generator, device=nodes.device)]
