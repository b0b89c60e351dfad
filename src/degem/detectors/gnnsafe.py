"""Logit energies, propagated over the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from degem.detectors.backbone import BackboneDetector, Layers
from degem.graph import Graph
from degem.ops.energy import logit_energy
from degem.parameters import Depth, Fraction, Positive
from degem.propagation.smoothing import propagate_energy


@dataclass(kw_only=True, eq=False)
class GNNSafe(BackboneDetector):
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

    Example:
        >>> import numpy as np
        >>> from degem import Graph
        >>> graph = Graph.from_arrays(features=np.eye(20), edges=[(i, i + 2) for i in range(18)], labels=[0, 1] * 10)
        >>> GNNSafe(num_epochs=5).fit(graph).decision_function(graph).shape
        (20,)
    """

    temperature: Positive = 1.0
    num_propagations: Depth = 2
    self_weight: Fraction = 0.5

    name: ClassVar[str] = "gnnsafe"
    paper: ClassVar[str] = "Wu et al. 2023"

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        energy = logit_energy(layers.logits, self.temperature)
        return propagate_energy(energy, graph.adjacency, num_steps=self.num_propagations, self_weight=self.self_weight)
