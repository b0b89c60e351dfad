"""Score propagation on a graph with edges added among confident nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor

from degem.detectors.backbone import BackboneDetector, Layers
from degem.graph import Graph
from degem.ops.energy import logit_energy
from degem.parameters import Depth, Fraction, Positive
from degem.propagation.smoothing import propagate_augmented


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

    Example:
        >>> from degem import Graph
        >>> graph = Graph.from_arrays(features=np.eye(20), edges=[(i, i + 2) for i in range(18)], labels=[0, 1] * 10)
        >>> GRASP(num_epochs=5).fit(graph).decision_function(graph).shape
        (20,)
    """

    temperature: Positive = 1.0
    num_propagations: Depth = 8
    self_weight: Fraction = 0.0
    group_share: Fraction = 0.5
    group_weight: Positive = 1.02

    name: ClassVar[str] = "grasp"
    paper: ClassVar[str] = "Ma et al. 2024"

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
