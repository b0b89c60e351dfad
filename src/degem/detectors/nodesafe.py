"""Propagated energies of a classifier whose logits are kept even."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from degem.detectors.backbone import GCNDetector, Layers, Losses
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.ops.energy import bounded_uniform_loss, logit_energy
from degem.parameters import Depth, Fraction, NonNegative, NonNegativeInt, Positive
from degem.propagation.smoothing import propagate_energy

if TYPE_CHECKING:
    from degem.nn.encoders_gnn import GCN


@dataclass(kw_only=True, eq=False)
class NodeSafe(GCNDetector):
    r"""GNNSafe's score on logits that are bounded and uniform (Yang et al. 2025).

    The loss is cross-entropy plus :math:`\lambda_2` times :func:`~degem.ops.energy.bounded_uniform_loss` on the
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

    Example:
        >>> import numpy as np
        >>> from degem import Graph
        >>> graph = Graph.from_arrays(features=np.eye(20), edges=[(i, i + 2) for i in range(18)], labels=[0, 1] * 10)
        >>> NodeSafe(num_epochs=5).fit(graph).decision_function(graph).shape
        (20,)
    """

    temperature: Positive = 1.0
    num_propagations: Depth = 2
    self_weight: Fraction = 0.5
    bounded_weight: NonNegative = 1.0
    bound_share: Fraction = 0.999
    warmup_epochs: NonNegativeInt = 51

    name: ClassVar[str] = "nodesafe"
    paper: ClassVar[str] = "Yang et al. 2025"

    def _losses(self, network: GCN, training: TrainingSet) -> Losses:
        nodes = torch.from_numpy(training.nodes).to(self.device)
        classification = super()._losses(network, training)

        def losses(logits: Tensor, epoch: int) -> dict[str, Tensor]:
            even = logits.new_zeros(())
            if epoch >= self.warmup_epochs and len(nodes) > 1:  # one node has no variance
                even = self.bounded_weight * bounded_uniform_loss(logits[nodes], bound_share=self.bound_share)
            return {**classification(logits, epoch), "evenness": even}

        return losses

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        return propagate_energy(
            logit_energy(layers.logits, self.temperature),
            graph.adjacency,
            num_steps=self.num_propagations,
            self_weight=self.self_weight,
        )
