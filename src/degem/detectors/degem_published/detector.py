"""DeGEM as published: encoder and energy head trained together by the recurrent update, full batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from degem.detectors.base import Detector, ScoreResult
from degem.detectors.degem_published.model import PublishedModel
from degem.detectors.degem_published.trainer import Contrast, Trainer, Views
from degem.detectors.restoring import restored
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.ops.features import row_normalize
from degem.ops.langevin import LangevinSettings
from degem.parameters import Depth, Dropout, Fraction, NonNegative, NonNegativeInt, Positive, Width
from degem.propagation.hop_products import hop_products
from degem.propagation.smoothing import propagate_energy
from degem.training import History, OnProgress, evaluating, seeded, train

BLOCK = 1 << 14
PROPAGATION_STEPS, PROPAGATION_SELF_WEIGHT = 2, 0.5
SAMPLER = LangevinSettings()


@dataclasses.dataclass(kw_only=True, eq=False)
class DeGEMPublished(Detector):
    r"""DeGEM by Algorithm 1 of its paper: the energy :math:`f(h, s)` of a latent. Higher = more OOD.

    Each epoch samples chains by Langevin steps in latent space, trains the energy head by maximum likelihood, renews
    the summary :math:`s` of the graph, and trains the encoder by contrast and cross-entropy.
    Chen et al., *Decoupled Graph Energy-based Model for Node Out-of-Distribution Detection on Heterophilic Graphs*,
    ICLR 2025.

    Arguments:
        version: ``paper`` is the text: a plain MLP as the head, two alternating Adam steps. ``release`` is the authors'
            program: BatchNorm and dropout in the head, which see the latents of all nodes in one pass; small initial
            hop weights without bias, a critic with one; one Adam on the sum of the losses.
        num_hops: Hops :math:`L`.
        latent_dim: Size :math:`d` of the latent.
        self_weight: Weight :math:`\beta` of the node itself in propagation.
        classification_weight: Weight :math:`\xi` of the cross-entropy; 0 switches it off.
        energy_penalty: Weight :math:`c` of the squared energies.
        langevin: :math:`K`, :math:`\lambda`, :math:`\sigma`, :math:`M` of the sampler.
        num_epochs: Epochs :math:`E`.
        learning_rate: Adam's learning rate.
        weight_decay: Adam's weight decay.
        dropout: Dropout of the encoder, and of the head in the release.
        multi_hop: The multi-hop encoder (MH); else one graph convolution.
        condition_weight: Weight :math:`\rho` of the summary in the energy (CE); 0 switches it off.
        energy_readout_weight: Weight :math:`\gamma` of the energy in the summary (ERo); 0 switches it off.
        energy_propagation: Average energies over neighbours, as GNNSafe does (Eprop).
        contrast: The contrastive loss of the encoder.
        energy: The score: from the head trained by maximum likelihood (``mle``) or from the class logits.

    Example:
        >>> from degem.data.demo import digits_graph
        >>> graph = digits_graph()
        >>> detector = DeGEMPublished(num_epochs=2, latent_dim=16).fit(graph)
        >>> detector.decision_function(graph).shape
        (1797,)
    """

    name = "degem-published"

    version: Literal["paper", "release"] = "paper"
    num_hops: Depth = 5
    latent_dim: Width = 512
    self_weight: NonNegative = 0.5
    classification_weight: NonNegative = 0.1
    energy_penalty: NonNegative = 1.0
    langevin: LangevinSettings = SAMPLER
    num_epochs: NonNegativeInt = 200
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 5e-4
    dropout: Dropout = 0.5
    multi_hop: bool = True
    condition_weight: NonNegative = 1.0
    energy_readout_weight: Fraction = 1.0
    energy_propagation: bool = False
    contrast: Contrast = "dgi"
    energy: Literal["mle", "logits"] = "mle"

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        graph = training.graph
        self.model_ = self._make_model()
        views = Views(
            graph.adjacency,
            row_normalize(graph.features),
            self.num_hops,
            self_weight=self.self_weight,
            contrast=self.contrast,
            rng=np.random.default_rng(self.seed),
        )
        generator = torch.Generator(self.device).manual_seed(self.seed)
        with seeded(self.seed + 1):
            trainer = Trainer(self.model_, views, training.nodes, graph.labels, self, generator)
            history = train(trainer.step, self.num_epochs, on_progress=on_progress)
        trainer.summarise()
        return history

    @torch.no_grad()
    def _score(self, graph: Graph) -> ScoreResult:
        energies, probabilities = [], []
        for latents in self._latent_blocks(graph):
            energies.append(self.model_.energies(latents).cpu())
            block = self.model_.probabilities(latents)
            if block is not None:
                probabilities.append(block.cpu())
        energy = torch.cat(energies)
        if self.energy_propagation:
            energy = propagate_energy(
                energy, graph.adjacency, num_steps=PROPAGATION_STEPS, self_weight=PROPAGATION_SELF_WEIGHT
            )
        return ScoreResult(energy.numpy(), torch.cat(probabilities).numpy() if probabilities else None)

    def _score_in_training(self, training: TrainingSet, graph: Graph) -> ScoreResult:
        return self._score(graph)

    @torch.no_grad()
    def embed(self, graph: Any, *, nodes: ArrayLike | None = None) -> NDArray[np.float32]:
        """The latent of each node; with ``nodes``, indices, of these only."""
        latents = torch.cat([block.cpu() for block in self._latent_blocks(self._checked(graph))]).numpy()
        return latents if nodes is None else latents[np.asarray(nodes)]

    def _state(self) -> dict[str, torch.Tensor]:
        return self.model_.state_dict()

    def _restore(self, state: dict[str, torch.Tensor]) -> None:
        self.model_ = restored(self, self._make_model, state)

    def _make_model(self) -> PublishedModel:
        with seeded(self.seed):
            return PublishedModel(self, self.num_features_, len(self.classes_)).to(self.device)

    def _latent_blocks(self, graph: Graph) -> Iterator[torch.Tensor]:
        with evaluating(self.model_):
            whole = hop_products(
                graph.adjacency, row_normalize(graph.features), self.num_hops, self_weight=self.self_weight
            )
            for block in self.model_.products(whole).split(BLOCK, dim=1):
                yield self.model_.encoder(block)
