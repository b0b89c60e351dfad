"""Detectors that also learn from nodes known to be out-of-distribution."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from degem.detectors.backbone import GCNDetector, Layers, Losses
from degem.detectors.logits import PropagatedEnergy
from degem.detectors.split import TrainingSet
from degem.errors import GraphError
from degem.graph import Graph, NodeSet
from degem.ops.losses import energy_margin_loss, logit_energy, uniform_cross_entropy
from degem.parameters import NonNegative, Positive

if TYPE_CHECKING:
    from degem.nn.encoders_gnn import GCN


@dataclass(kw_only=True, eq=False)
class ExposureDetector(GCNDetector):
    """The base of detectors whose classifier is also shown exposure nodes, of the same graph or of another."""

    needs_exposure: ClassVar[bool] = True

    @abstractmethod
    def _exposure_loss(self, training: TrainingSet, inside: Tensor, outside: Tensor) -> Tensor:
        """The loss added to the cross-entropy, of the logits on the training graph and on the exposure graph."""

    def _losses(self, network: GCN, training: TrainingSet) -> Losses:
        exposed = exposure_of(training).graph
        if exposed.num_features != self.num_features_:
            raise GraphError(
                f"the exposure graph has {exposed.num_features} feature columns, but the training graph has "
                f"{self.num_features_}: describe both by the same columns"
            )
        outside = self._tensors(exposed)
        classification = super()._losses(network, training)

        def losses(logits: Tensor, epoch: int) -> dict[str, Tensor]:
            exposure = self._exposure_loss(training, logits, network(outside.features, outside.adjacency))
            return {**classification(logits, epoch), "exposure": exposure}

        return losses


def exposure_of(training: TrainingSet) -> NodeSet:
    """The exposure nodes."""
    assert training.exposure is not None  # Detector.fit asks for it
    return training.exposure


@dataclass(kw_only=True, eq=False)
class OE(ExposureDetector):
    r"""A classifier taught to be unsure of exposure nodes (Hendrycks et al. 2019).

    The score is :math:`1 - \max_y p(y \mid x)`. The loss is cross-entropy plus :math:`\lambda` times the
    cross-entropy from uniform on exposure nodes. GNNSafe's benchmark scores with the largest logit; the paper, and
    this, with the largest probability.

    Arguments:
        exposure_weight: The weight :math:`\lambda`.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.

    Example:
        >>> import numpy as np
        >>> from degem import Graph, NodeSet
        >>> graph = Graph.from_arrays(
        ...     features=np.eye(20), edges=[(i, i + 2) for i in range(18)], labels=[0, 1] * 8 + [-1] * 4
        ... )
        >>> OE(num_epochs=5).fit(graph, exposure=NodeSet(graph, np.arange(16, 20))).decision_function(graph).shape
        (20,)
    """

    exposure_weight: NonNegative = 0.5

    name = "oe"

    def _exposure_loss(self, training: TrainingSet, inside: Tensor, outside: Tensor) -> Tensor:
        return self.exposure_weight * uniform_cross_entropy(outside[exposure_of(training).nodes])

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        return 1 - layers.logits.double().softmax(dim=1).amax(dim=1)


@dataclass(kw_only=True, eq=False)
class EnergyFT(ExposureDetector):
    r"""Energy of a classifier trained with squared hinge margins on exposure nodes (Liu et al. 2020).

    The loss is cross-entropy plus :math:`\lambda` times :func:`~degem.ops.losses.energy_margin_loss`; the score
    is :math:`-T \log \sum_y e^{g_y / T}`. GNNSafe's benchmark picks exposure nodes by the indices of the *training*
    nodes and cuts the longer of the two groups; here the exposure nodes are used, all of them.

    Arguments:
        temperature: The temperature :math:`T`.
        exposure_weight: The weight :math:`\lambda`.
        margin_in: The margin :math:`m_{in}` that ID energies should stay below.
        margin_out: The margin :math:`m_{out}` that exposure energies should stay above.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.
    """

    temperature: Positive = 1.0
    exposure_weight: NonNegative = 0.1
    margin_in: float = -5.0
    margin_out: float = -1.0

    name = "energy-ft"

    def _exposure_loss(self, training: TrainingSet, inside: Tensor, outside: Tensor) -> Tensor:
        exposed = exposure_of(training)
        return self.exposure_weight * energy_margin_loss(
            self._energies(inside, training.graph)[training.nodes],
            self._energies(outside, exposed.graph)[exposed.nodes],
            margin_in=self.margin_in,
            margin_out=self.margin_out,
        )

    def _energies(self, logits: Tensor, graph: Graph) -> Tensor:
        """The energies of logits on a graph."""
        return logit_energy(logits, self.temperature)

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        return self._energies(layers.logits, graph)


@dataclass(kw_only=True, eq=False)
class GNNSafePP(PropagatedEnergy, EnergyFT):
    r"""GNNSafe++: the margins of :class:`EnergyFT` on propagated energies (Wu et al. 2023).

    Training and scoring use :math:`e^{(k)} = \alpha e^{(k-1)} + (1 - \alpha) D^{-1} A e^{(k-1)}`, :math:`k = 1..K`. The
    authors' program cuts the longer of the two groups of nodes in the loss; here all are used.

    Arguments:
        exposure_weight: The weight :math:`\lambda` of the margins.
        num_propagations: The number of steps :math:`K`.
        self_weight: The weight :math:`\alpha` of the node itself.

    The others are those of EnergyFT and :class:`~degem.detectors.backbone.GCNDetector`.
    """

    exposure_weight: NonNegative = 1.0

    name = "gnnsafe++"
