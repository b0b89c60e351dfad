"""Scores read off the logits of a graph classifier: how unsure it is, and energies that flow along edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from degem.detectors.backbone import BackboneDetector, GCNDetector, Layers, Losses
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.ops.losses import bounded_uniform_loss, logit_energy
from degem.parameters import Depth, Fraction, NonNegative, NonNegativeInt, Positive
from degem.propagation.smoothing import propagate_augmented, propagate_energy

if TYPE_CHECKING:
    from degem.nn.encoders_gnn import GCN


@dataclass(kw_only=True, eq=False)
class MSP(BackboneDetector):
    r"""How unsure the classifier is: :math:`1 - \max_y p(y \mid x)` (Hendrycks & Gimpel 2017).

    Arguments: those of :class:`~degem.detectors.backbone.GCNDetector`.

    Example:
        >>> import numpy as np
        >>> from degem import Graph
        >>> graph = Graph.from_arrays(features=np.eye(20), edges=[(i, i + 2) for i in range(18)], labels=[0, 1] * 10)
        >>> MSP(num_epochs=5).fit(graph).decision_function(graph).shape
        (20,)
    """

    name = "msp"

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        return 1 - layers.logits.double().softmax(dim=1).amax(dim=1)


@dataclass(kw_only=True, eq=False)
class Energy(BackboneDetector):
    r"""The free energy of the logits, :math:`-T \log \sum_y e^{g_y / T}` (Liu et al. 2020).

    Arguments:
        temperature: The temperature :math:`T`.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.
    """

    temperature: Positive = 1.0

    name = "energy"

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        return logit_energy(layers.logits.double(), self.temperature)


@dataclass(kw_only=True, eq=False)
class PropagatedEnergy(GCNDetector):
    """The base of detectors whose score is the energy of the logits after some steps of averaging over neighbours."""

    temperature: Positive = 1.0
    num_propagations: Depth = 2
    self_weight: Fraction = 0.5

    def _energies(self, logits: Tensor, graph: Graph) -> Tensor:
        """The propagated energies of logits on a graph."""
        energy = logit_energy(logits, self.temperature)
        return propagate_energy(energy, graph.adjacency, num_steps=self.num_propagations, self_weight=self.self_weight)

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        return self._energies(layers.logits, graph)


@dataclass(kw_only=True, eq=False)
class GNNSafe(PropagatedEnergy, BackboneDetector):
    r"""Energy that flows along edges (Wu et al. 2023).

    .. math:: e^{(0)} = -T \log \sum_y e^{g_y / T}, \quad
        e^{(k)} = \alpha e^{(k-1)} + (1 - \alpha) D^{-1} A e^{(k-1)}, \quad k = 1..K

    A node without neighbours keeps its energy; the authors' program multiplies it by :math:`\alpha` at each step, which
    makes every such node look like an outlier.

    Arguments:
        temperature: The temperature :math:`T`.
        num_propagations: The number of steps :math:`K`.
        self_weight: The weight :math:`\alpha` of the node itself.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.
    """

    name = "gnnsafe"


@dataclass(kw_only=True, eq=False)
class GRASP(BackboneDetector):
    r"""Logit energies propagated as if a group of confident nodes were all joined to each other (Ma et al. 2024).

    The equation is in :func:`~degem.propagation.smoothing.propagate_augmented`. The paper draws the group :math:`G`
    from the training nodes; a graph to be scored need not hold any, so here it is the most confident nodes (largest
    softmax) of the graph that is scored, a variant the authors' program offers too.

    Arguments:
        temperature: The temperature :math:`T` of the energy.
        num_propagations: The number of steps :math:`K`.
        self_weight: The weight :math:`\alpha` of the node itself.
        group_share: The share :math:`\tau_2` of nodes in :math:`G`.
        group_weight: The weight :math:`\delta` of the added edges.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.
    """

    temperature: Positive = 1.0
    num_propagations: Depth = 8
    self_weight: Fraction = 0.0
    group_share: Fraction = 0.5
    group_weight: Positive = 1.02

    name = "grasp"

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        confidence = layers.logits.softmax(dim=1).amax(dim=1)
        return propagate_augmented(
            logit_energy(layers.logits, self.temperature),
            graph.adjacency,
            confidence >= np.quantile(confidence.numpy(force=True), 1 - self.group_share),
            num_steps=self.num_propagations,
            self_weight=self.self_weight,
            group_weight=self.group_weight,
        )


@dataclass(kw_only=True, eq=False)
class NodeSafe(PropagatedEnergy):
    r"""GNNSafe's score on logits that are bounded and uniform (Yang et al. 2025).

    The loss is cross-entropy plus :math:`\lambda_2` times :func:`~degem.ops.losses.bounded_uniform_loss` on the
    training nodes, the latter after ``warmup_epochs``. The score is propagated energy,
    :math:`e^{(k)} = \eta e^{(k-1)} + (1 - \eta) D^{-1} A e^{(k-1)}`. The authors' program passes the weight of another
    loss (1 by default) for :math:`\eta`, so that nothing is propagated; here it is the paper's :math:`\eta`.

    Arguments:
        temperature: The temperature :math:`T` of the energy.
        num_propagations: The number of steps :math:`K`.
        self_weight: The weight :math:`\eta` of the node itself.
        bounded_weight: The weight :math:`\lambda_2` of the loss.
        bound_share: The share :math:`\lambda_1` of its bounding term.
        warmup_epochs: Epochs before it sets in.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.
    """

    bounded_weight: NonNegative = 1.0
    bound_share: Fraction = 0.999
    warmup_epochs: NonNegativeInt = 51

    name = "nodesafe"

    def _losses(self, network: GCN, training: TrainingSet) -> Losses:
        nodes = torch.from_numpy(training.nodes).to(self.device)
        classification = super()._losses(network, training)

        def losses(logits: Tensor, epoch: int) -> dict[str, Tensor]:
            even = logits.new_zeros(())
            if epoch >= self.warmup_epochs and len(nodes) > 1:  # one node has no variance
                even = self.bounded_weight * bounded_uniform_loss(logits[nodes], bound_share=self.bound_share)
            return {**classification(logits, epoch), "evenness": even}

        return losses
