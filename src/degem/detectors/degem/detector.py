"""DeGEM as a detector."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from degem.detectors.base import Detector, Scored
from degem.detectors.degem.model import Contrast, DeGEMModel, ModelShape
from degem.detectors.degem.trainer import Trainer, TrainingSettings
from degem.detectors.degem.views import Views
from degem.detectors.explanation import class_means
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.ops.features import row_normalize
from degem.ops.hop_rows import hop_rows
from degem.ops.langevin import LangevinSettings
from degem.ops.propagation import hop_features
from degem.parameters import Count, Fraction, NonNegative, NonNegativeInt, Positive
from degem.training import History, OnProgress, train

BLOCK = 1 << 14


@dataclasses.dataclass(kw_only=True, eq=False)
class DeGEM(Detector):
    r"""Decoupled graph energy model: energy in the latent space of a contrastive encoder. Higher = more OOD.

    The score of a node is :math:`f(g(x, \mathcal{N}(x)), s)`: a multi-hop encoder :math:`g` trained by Deep Graph
    Infomax, and an energy head :math:`f` trained by maximum likelihood with Langevin sampling in latent space.
    Chen et al., *Decoupled Graph Energy-based Model for Node Out-of-Distribution Detection on Heterophilic Graphs*,
    ICLR 2025. No OOD node is needed for training.

    Arguments:
        num_hops: Hops :math:`L`.
        latent_dim: Size :math:`d` of the latent.
        self_weight: Weight :math:`\beta` of the node itself in propagation.
        multi_hop: The multi-hop encoder (MH); else one graph convolution.
        linear_hops: The paper's linear encoder instead of normalised ReLU hops.
        contrast: The contrastive loss of the encoder.
        refresh_every: Steps between two corruptions of the graph.
        energy: The score: the head trained by maximum likelihood (``mle``), or the energy of the class logits.
        head: The energy head :math:`f`: an MLP on :math:`[h \| \rho s]`, or bilinear.
        head_dim: Hidden width of the MLP.
        head_batch_norm: BatchNorm and dropout in the head, as the authors' program has them.
        condition_weight: Weight :math:`\rho` of the summary in the energy (CE); 0 switches it off.
        energy_readout_weight: Weight :math:`\gamma` of the energy in the summary (ERo); 0 switches it off.
        energy_penalty: Weight :math:`c` of the squared energies.
        classification_weight: Weight :math:`\xi` of the cross-entropy; 0 switches it off.
        langevin: :math:`K`, :math:`\lambda`, :math:`\sigma`, :math:`M` of the sampler.
        num_epochs: Training steps :math:`E`.
        batch_size: Nodes in a step; None is the whole graph.
        learning_rate: Adam's learning rate.
        weight_decay: Adam's weight decay.
        dropout: Dropout of the encoder.
        normalize_features: Scale each row of the features to unit sum.

    Example:
        >>> from degem.data.demo import digits_graph
        >>> graph = digits_graph()
        >>> detector = DeGEM(num_epochs=2, latent_dim=16).fit(graph)
        >>> detector.decision_function(graph).shape
        (1797,)
    """

    name: ClassVar[str] = "degem"
    paper: ClassVar[str] = "Chen et al. 2025"
    needs_labels: ClassVar[bool] = False

    num_hops: Count = 5
    latent_dim: Count = 512
    self_weight: NonNegative = 0.5
    multi_hop: bool = True
    linear_hops: bool = False
    contrast: Contrast = "dgi"
    refresh_every: Count = 1
    energy: Literal["mle", "logits"] = "mle"
    head: Literal["mlp", "bilinear"] = "mlp"
    head_dim: Count = 64
    head_batch_norm: bool = False
    condition_weight: NonNegative = 1.0
    energy_readout_weight: Fraction = 1.0
    energy_penalty: NonNegative = 1.0
    classification_weight: NonNegative = 0.1
    langevin: LangevinSettings = dataclasses.field(default_factory=LangevinSettings)
    num_epochs: NonNegativeInt = 200
    batch_size: Count | None = None
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 5e-4
    dropout: Fraction = 0.5
    normalize_features: bool = True

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        generator = torch.Generator(self.device).manual_seed(self.seed)
        with torch.random.fork_rng(
            devices=[]
        ):  # modules draw their initial weights and dropout from the global generator
            torch.manual_seed(self.seed)
            self.model_ = self._build()
            views = Views(
                training.graph.adjacency,
                self._inputs(training.graph),
                self.num_hops,
                self_weight=self.self_weight,
                contrast=self.contrast,
                refresh_every=self.refresh_every,
                rng=np.random.default_rng(self.seed),
                device=self.device,
            )
            trainer = Trainer(
                self.model_, views, training.nodes, training.graph.labels, self._training_settings(), generator
            )
            history = train(trainer.step, self.num_epochs, on_progress=on_progress)
            trainer.summarise()
        self.model_.hop_means.copy_(class_means(views.hops, training))
        return history

    @torch.no_grad()
    def _score(self, graph: Graph) -> Scored:
        energies, probabilities = [], []
        for latents in self._latent_blocks(graph):
            energies.append(self.model_.energies(latents).cpu())
            block = self.model_.probabilities(latents)
            if block is not None:
                probabilities.append(block.cpu())
        return Scored(torch.cat(energies).numpy(), torch.cat(probabilities).numpy() if probabilities else None)

    @torch.no_grad()
    def _embed(self, graph: Graph) -> NDArray[np.float32]:
        return torch.cat([latents.cpu() for latents in self._latent_blocks(graph)]).numpy()

    @torch.no_grad()
    def _embed_some(self, graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        self.model_.eval()
        return self.model_.latents(torch.from_numpy(self._hops(graph)[:, nodes]).to(self.device)).cpu().numpy()

    def _latent_blocks(self, graph: Graph) -> Iterator[torch.Tensor]:
        self.model_.eval()
        hops = self._hops(graph)
        for start in range(0, graph.num_nodes, BLOCK):
            yield self.model_.latents(torch.from_numpy(hops[:, start : start + BLOCK]).to(self.device))

    def _hops(self, graph: Graph) -> NDArray[np.float32]:
        return hop_features(graph.adjacency, self._inputs(graph), self.num_hops, self_weight=self.self_weight)

    def _hop_rows(self, graph: Graph, nodes: NDArray[np.int64]) -> list[torch.Tensor]:
        rows = hop_rows(graph.adjacency, self._scaled(graph), nodes, self.num_hops, self.self_weight)
        return [torch.from_numpy(hop).to(self.device) for hop in rows]

    def _score_from_hops(self, hops: list[torch.Tensor]) -> torch.Tensor:
        self.model_.eval()
        return self.model_.energies(self.model_.latents(torch.stack(hops)))

    def _hop_reference(self) -> list[torch.Tensor]:
        return list(self.model_.hop_means)

    def _scaled(self, graph: Graph) -> NDArray[np.float32] | sp.csr_array:
        return row_normalize(graph.features) if self.normalize_features else graph.features

    def _inputs(self, graph: Graph) -> NDArray[np.float32]:
        """The features that are propagated: dense, C-contiguous, scaled."""
        features = self._scaled(graph)
        dense = features.toarray() if isinstance(features, sp.csr_array) else features
        return np.ascontiguousarray(dense, dtype=np.float32)

    def _build(self) -> DeGEMModel:
        shape = {field.name: getattr(self, field.name, None) for field in dataclasses.fields(ModelShape)}
        return DeGEMModel(ModelShape(**shape | {"in_dim": self.num_features_, "num_classes": len(self.classes_)})).to(
            self.device
        )

    def _training_settings(self) -> TrainingSettings:
        return TrainingSettings(
            **{field.name: getattr(self, field.name) for field in dataclasses.fields(TrainingSettings)}
        )

    def _state(self) -> dict[str, torch.Tensor]:
        return self.model_.state_dict()

    def _restore(self, state: dict[str, torch.Tensor]) -> None:
        self.model_ = self._build()
        self.model_.load_state_dict(state)
        self.model_.eval()
