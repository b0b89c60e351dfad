"""Algorithm 1, one epoch at a time: sample chains, train the energy head, renew the summary, train the encoder.

:class:`Views` are the changed copies of the graph that contrast compares it with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from degem.detectors.degem_published.model import PublishedModel
from degem.ops.features import Features
from degem.ops.langevin import fresh_chains, replayed_chains
from degem.ops.losses import contrastive_divergence, energy_readout, grace_loss, infomax_loss, sugrl_loss
from degem.propagation.hop_products import HopProducts, hop_products
from degem.training import descend

if TYPE_CHECKING:
    from degem.detectors.degem_published.detector import DeGEMPublished

Contrast = Literal["none", "dgi", "grace", "sugrl"]
GRACE_EDGE_DROP, GRACE_FEATURE_MASK = 0.2, 0.3


class Views:
    """The graph, and its corrupted (DGI) or augmented (GRACE) copies, made anew in every epoch.

    Arguments:
        adjacency: The adjacency A.
        features: The features X, of shape (n, r).
        num_hops: The number of hops L.
        self_weight: The weight β of the node itself.
        contrast: Which contrastive loss the copies are for.
        rng: Source of permutations, dropped edges and masked features.
    """

    def __init__(
        self,
        adjacency: sp.csr_array,
        features: Features,
        num_hops: int,
        *,
        self_weight: float,
        contrast: Contrast,
        rng: np.random.Generator,
    ) -> None:
        self.adjacency, self.features, self.num_hops, self.self_weight = adjacency, features, num_hops, self_weight
        self.contrast, self.entropy, self.epoch = contrast, int(rng.integers(1 << 62)), 0
        self.graph = self._products(adjacency, features)
        self.copies: list[HopProducts] = []

    @property
    def num_nodes(self) -> int:
        """The number of nodes n."""
        return int(self.adjacency.shape[0])

    def refresh(self) -> None:
        """Make the copies of the next epoch."""
        rng = np.random.default_rng([self.entropy, self.epoch])
        self.epoch += 1
        if self.contrast == "dgi":
            self.copies = [self.graph.permuted(rng.permutation(self.num_nodes))]
        elif self.contrast == "grace":
            self.copies = [self._augmented(rng) for _ in range(2)]

    def _augmented(self, rng: np.random.Generator) -> HopProducts:
        """A view of GRACE: some edges dropped, some feature columns masked."""
        upper = sp.triu(self.adjacency, format="coo")
        kept = rng.random(upper.nnz) >= GRACE_EDGE_DROP
        row, column = upper.row[kept], upper.col[kept]
        half = sp.coo_array((upper.data[kept], (row, column)), shape=upper.shape)
        mask = np.asarray(rng.random(self.features.shape[1]) >= GRACE_FEATURE_MASK, dtype=np.float32)
        return self._products(sp.csr_array(half + half.T), self.features @ sp.diags_array(mask))

    def _products(self, adjacency: sp.csr_array, features: Features) -> HopProducts:
        return hop_products(adjacency, features, self.num_hops, self_weight=self.self_weight)


class Trainer:
    """The state of a run: the model, its optimisers, the replay buffer and the energies of the last epoch.

    Arguments:
        model: The modules to train, in place.
        views: The graph and its corrupted or augmented copies.
        train_nodes: The in-distribution nodes.
        labels: A label for every node, −1 where unknown.
        settings: The detector whose parameters weigh the losses.
        generator: Source of chains and noise.
    """

    def __init__(
        self,
        model: PublishedModel,
        views: Views,
        train_nodes: NDArray[np.int64],
        labels: NDArray[np.int64],
        settings: DeGEMPublished,
        generator: torch.Generator,
    ) -> None:
        device = model.summary.device
        self.model, self.views, self.settings, self.generator = model, views, settings, generator
        self.train_nodes = torch.from_numpy(train_nodes).to(device)
        self.train_labels = torch.from_numpy(labels[train_nodes]).to(device)
        self.node_energies = torch.zeros(views.num_nodes, device=device)
        self.num_chains = settings.langevin.num_chains or len(train_nodes)
        self.buffer = fresh_chains(
            settings.langevin.buffer_factor * self.num_chains, settings.latent_dim, settings.langevin, generator
        )
        head = list(model.head.parameters())
        rest = [parameter for name, parameter in model.named_parameters() if not name.startswith("head.")]
        together = [[*rest, *head]] if settings.version == "release" else [head, rest]
        self.optimizers = [
            torch.optim.Adam(group, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True)
            for group in together
        ]

    def step(self, index: int) -> Mapping[str, float]:
        """One epoch: as the paper's text has it, or as the release does."""
        self.model.train()
        self.views.refresh()
        latents = self.model.latents(self.views.graph)
        losses = self._release_step(latents) if self.settings.version == "release" else self._paper_step(latents)
        return {name: loss.item() for name, loss in losses.items()}

    @torch.no_grad()
    def summarise(self) -> None:
        """Set the model's summary s from every node of the graph, as scoring needs it."""
        self.model.eval()
        self.model.summary.copy_(self._summary(self.model.latents(self.views.graph)))

    def _paper_step(self, latents: Tensor) -> dict[str, Tensor]:
        """The head takes its step first; the summary that trains the encoder has the energies of the new head."""
        fixed = latents.detach()
        summary = self._summary(fixed)
        chains = self._sample(summary)
        head_optimizer, encoder_optimizer = self.optimizers
        energy_loss = contrastive_divergence(
            self.model.head(fixed[self.train_nodes], summary),
            self.model.head(chains, summary),
            self.settings.energy_penalty,
        )
        descend(head_optimizer, {"energy": energy_loss})
        with torch.no_grad():
            self.node_energies = self.model.head(fixed, summary)
        losses = self._encoder_losses(latents)
        if losses:
            descend(encoder_optimizer, self._weighed(losses))
        return {"energy": energy_loss, **losses}

    def _release_step(self, latents: Tensor) -> dict[str, Tensor]:
        """One pass of the head over all nodes, so that BatchNorm sees them all; one Adam on the sum of the losses."""
        fixed = latents.detach()
        summary = self._summary(fixed)
        chains = self._sample(summary)
        energies = self.model.head(fixed, summary)
        energy_loss = contrastive_divergence(
            energies[self.train_nodes], self.model.head(chains, summary), self.settings.energy_penalty
        )
        self.node_energies = energies.detach()
        losses = self._encoder_losses(latents)
        descend(self.optimizers[0], {"energy": energy_loss, **self._weighed(losses)})
        return {"energy": energy_loss, **losses}

    def _summary(self, latents: Tensor) -> Tensor:
        return energy_readout(latents, self.node_energies, self.settings.energy_readout_weight)

    def _sample(self, summary: Tensor) -> Tensor:
        """Chains moved K steps; where they end goes back into the buffer."""
        settings = self.settings.langevin
        chains, rows = replayed_chains(self.buffer, self.num_chains, settings, self.generator)
        chains = self.model.head.sample(chains, summary, settings, self.generator)
        self.buffer[rows] = chains
        return chains

    def _encoder_losses(self, latents: Tensor) -> dict[str, Tensor]:
        """The contrastive loss and the cross-entropy, as far as they are switched on."""
        summary = self._summary(latents)
        self.model.summary.copy_(summary.detach())
        losses: dict[str, Tensor] = {}
        contrast = self._contrast(latents, summary)
        if contrast is not None:
            losses["contrast"] = contrast
        labels = self.train_labels
        if self.model.classifier is not None and (labels >= 0).any() and self.settings.classification_weight:
            logits = self.model.classifier(latents[self.train_nodes])
            losses["classification"] = F.cross_entropy(logits, labels, ignore_index=-1)
        return losses

    def _weighed(self, losses: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Contrast and ξ · cross-entropy."""
        weights = {"contrast": 1.0, "classification": self.settings.classification_weight}
        return {name: weights[name] * loss for name, loss in losses.items()}

    def _contrast(self, latents: Tensor, summary: Tensor) -> Tensor | None:
        model = self.model
        if model.critic is not None:
            corrupted = model.latents(self.views.copies[0])
            return infomax_loss(model.critic(latents, summary), model.critic(corrupted, summary))
        if model.projector is not None:
            first, second = (model.latents(view) for view in self.views.copies)
            return grace_loss(model.projector(first), model.projector(second))
        if model.anchor is not None:
            both = self.views.graph.times(model.anchor.weight.T.expand(2, -1, -1), range(2))
            anchor, neighbour = F.relu(both + model.anchor.bias)
            shuffled = anchor[torch.randperm(len(anchor), generator=self.generator, device=anchor.device)]
            return sugrl_loss(anchor, latents, neighbour, shuffled)
        return None
