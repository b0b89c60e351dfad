"""DeGEM as a detector: its parameters, and the two ways of training it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray

from degem.detectors.base import Detector, Scored
from degem.detectors.cost import Cost
from degem.detectors.degem.recurrent import Recurrent
from degem.detectors.degem.recurrent_model import Contrast
from degem.detectors.degem.staged import Staged, used_hops
from degem.detectors.degem.staged_cost import staged_cost
from degem.detectors.degem.terms import TermWeights
from degem.detectors.split import TrainingSet
from degem.graph import Graph, as_graph
from degem.ops.langevin import LangevinSettings
from degem.parameters import Count, Dropout, Fraction, NonNegative, NonNegativeInt, Positive
from degem.training import History, OnProgress

DEFAULT_WEIGHTS = TermWeights()
STEP = 0.05
CHAINS_AT_TEMPERATURE_ONE = LangevinSettings(
    num_steps=5, step_size=STEP, noise_std=math.sqrt(2 * STEP), num_chains=256, start="normal"
)
PUBLISHED: dict[str, Any] = {
    "training": "recurrent",
    "num_hops": 5,
    "latent_dim": 512,
    "self_weight": 0.5,
    "classification_weight": 0.1,
    "energy_penalty": 1.0,
    "langevin": LangevinSettings(),
    "num_epochs": 200,
    "batch_size": None,
    "learning_rate": 1e-3,
    "weight_decay": 5e-4,
    "dropout": 0.5,
}
STAGED_ALONE = frozenset(
    {"projection_dim", "random_dim", "density_dim", "num_head_steps", "term_weights", "memory_budget"}
)
RECURRENT_ALONE = frozenset(
    {"multi_hop", "linear_hops", "contrast", "refresh_every", "energy", "energy_propagation"}
    | {"head", "head_batch_norm", "condition_weight", "energy_readout_weight"}
)


@dataclasses.dataclass(kw_only=True, eq=False)
class DeGEM(Detector):
    r"""Decoupled graph energy model: energies in the latent space of a contrastive encoder. Higher = more OOD.

    A multi-hop encoder :math:`h = g(x, \mathcal{N}(x))` is trained by Deep Graph Infomax and cross-entropy, an energy
    head :math:`f(h)` by maximum likelihood with Langevin sampling in latent space. No OOD node is needed.
    Chen et al., *Decoupled Graph Energy-based Model for Node Out-of-Distribution Detection on Heterophilic Graphs*,
    ICLR 2025.

    There are two ways of training. ``staged``, the default, trains the encoder first and then the energies, on a
    whitened latent over a Gaussian base, and scores by several energies on one scale: see ``docs/strict.md`` for why.
    ``recurrent`` is the paper's: head and encoder together, the head's energy alone as the score; its published
    settings are :meth:`as_published`.

    Arguments:
        training: The way of training.
        num_hops: Hops :math:`L`; the staged way looks at hops 0, 1, 2, 3, 5, 10, … of them.
        latent_dim: Size :math:`d` of the latent.
        self_weight: Weight :math:`\beta` of the node itself in propagation.
        classification_weight: Weight :math:`\xi` of the cross-entropy; 0 switches it off.
        head_dim: Hidden width of the energy head; for the staged way 0 leaves the Gaussian base alone.
        energy_penalty: Weight :math:`c` of the squared energies.
        langevin: :math:`K`, :math:`\lambda`, :math:`\sigma`, :math:`M` of the sampler.
        num_epochs: Training steps :math:`E` of the encoder.
        batch_size: Nodes in a step; None, for the recurrent way, is the whole graph.
        learning_rate: Adam's learning rate.
        weight_decay: Adam's weight decay.
        dropout: Dropout of the encoder.
        normalize_features: Scale each row of the features to unit sum.
        projection_dim: Staged: directions that wide features are projected to, singular and up to 32 of classes.
        random_dim: Staged: random directions beside them.
        density_dim: Staged: leading directions in which hop densities are taken.
        num_head_steps: Staged: training steps of the energy head.
        term_weights: Staged: what each energy weighs on heterophilic and on homophilic graphs.
        memory_budget: Staged: MiB that hop features may take in memory; default: a quarter of what is free.
        multi_hop: Recurrent: the multi-hop encoder (MH); else one graph convolution.
        linear_hops: Recurrent: the paper's linear encoder instead of normalised ReLU hops.
        contrast: Recurrent: the contrastive loss of the encoder.
        refresh_every: Recurrent: steps between two corruptions of the graph.
        energy: Recurrent: the score, from the head trained by maximum likelihood (``mle``) or from the class logits.
        energy_propagation: Recurrent: average energies over neighbours, as GNNSafe does (Eprop).
        head: Recurrent: the energy head :math:`f`, an MLP on :math:`[h \| \rho s]` or bilinear.
        head_batch_norm: Recurrent: BatchNorm and dropout in the head, as the authors' program has them.
        condition_weight: Recurrent: weight :math:`\rho` of the summary in the energy (CE); 0 switches it off.
        energy_readout_weight: Recurrent: weight :math:`\gamma` of the energy in the summary (ERo); 0 switches it off.

    Example:
        >>> from degem.data.demo import digits_graph
        >>> graph = digits_graph()
        >>> detector = DeGEM(num_epochs=5).fit(graph)
        >>> detector.decision_function(graph).shape
        (1797,)
    """

    name: ClassVar[str] = "degem"
    paper: ClassVar[str] = "Chen et al. 2025"
    needs_labels: ClassVar[bool] = False

    training: Literal["staged", "recurrent"] = "staged"
    num_hops: Count = 10
    latent_dim: Count = 64
    self_weight: NonNegative = 0.0
    classification_weight: NonNegative = 1.0
    head_dim: NonNegativeInt = 64
    energy_penalty: NonNegative = 0.1
    langevin: LangevinSettings = CHAINS_AT_TEMPERATURE_ONE
    num_epochs: NonNegativeInt = 150
    batch_size: Count | None = 256
    learning_rate: Positive = 5e-3
    weight_decay: NonNegative = 0.0
    dropout: Dropout = 0.3
    normalize_features: bool = True

    projection_dim: Count = 256
    random_dim: NonNegativeInt = 32
    density_dim: Count = 16
    num_head_steps: NonNegativeInt = 50
    term_weights: TermWeights = DEFAULT_WEIGHTS
    memory_budget: Positive | None = None

    multi_hop: bool = True
    linear_hops: bool = False
    contrast: Contrast = "dgi"
    refresh_every: Count = 1
    energy: Literal["mle", "logits"] = "mle"
    energy_propagation: bool = False
    head: Literal["mlp", "bilinear"] = "mlp"
    head_batch_norm: bool = False
    condition_weight: NonNegative = 1.0
    energy_readout_weight: Fraction = 1.0

    @classmethod
    def as_published(cls, **changes: Any) -> Self:
        """The paper's training at its published settings, with ``changes``.

        Example:
            >>> DeGEM.as_published(num_epochs=50).latent_dim
            512
        """
        return cls(**{**PUBLISHED, **changes})

    def estimate(self, graph: Any) -> Cost | None:
        """What :meth:`fit` on ``graph`` will take; None for the recurrent way."""
        if self.training != "staged":
            return None
        return staged_cost(self, as_graph(graph), used_hops(self.num_hops))

    @property
    def resumable(self) -> bool:
        """Whether :meth:`fit` writes checkpoints: the staged way does."""
        return self.training == "staged"

    @property
    def idle_parameters(self) -> frozenset[str]:
        """The parameters of the other way of training.

        Example:
            >>> "term_weights" in DeGEM.as_published().idle_parameters
            True
        """
        return RECURRENT_ALONE if self.training == "staged" else STAGED_ALONE

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        self.way_ = self._make_way()
        return self.way_.fit(training, on_progress)

    def _settle(self, training: TrainingSet, held_out: NDArray[np.int64]) -> None:
        if isinstance(self.way_, Staged):
            self.way_.settle(training, held_out)

    def _score(self, graph: Graph) -> Scored:
        return self.way_.score(graph)

    def _scores(self, graph: Graph) -> NDArray[np.floating[Any]]:
        return self.way_.scores(graph) if isinstance(self.way_, Staged) else self.way_.score(graph).scores

    def _embed(self, graph: Graph) -> NDArray[np.float32]:
        return self.way_.embed(graph)

    def _embed_some(self, graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.way_.embed_some(graph, nodes)

    def _hop_rows(self, graph: Graph, nodes: NDArray[np.int64]) -> list[torch.Tensor]:
        return self.way_.hop_rows(graph, nodes)

    def _score_from_hops(self, hops: list[torch.Tensor]) -> torch.Tensor:
        return self.way_.score_from_hops(hops)

    def _hop_reference(self) -> list[torch.Tensor]:
        return self.way_.hop_reference()

    def _state(self) -> dict[str, torch.Tensor]:
        return self.way_.module.state_dict()

    def _restore(self, state: dict[str, torch.Tensor]) -> None:
        self.way_ = self._make_way()
        self.way_.module.load_state_dict(state)
        self.way_.module.eval()

    def _make_way(self) -> Staged | Recurrent:
        way = Staged if self.training == "staged" else Recurrent
        return way(self, self.num_features_, len(self.classes_))
