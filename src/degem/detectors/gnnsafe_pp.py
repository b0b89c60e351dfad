"""Propagated energies, parted by margins on exposure nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from degem.detectors.energy_ft import EnergyFT
from degem.graph import Graph
from degem.ops.energy import logit_energy
from degem.parameters import Depth, Fraction, NonNegative
from degem.propagation.smoothing import propagate_energy


@dataclass(kw_only=True, eq=False)
class GNNSafePP(EnergyFT):
    r"""GNNSafe++: the margins of :class:`~degem.detectors.energy_ft.EnergyFT` on propagated energies (Wu et al. 2023).

    Training and scoring use :math:`e^{(k)} = \alpha e^{(k-1)} + (1 - \alpha) D^{-1} A e^{(k-1)}`, :math:`k = 1..K`. The
    authors' program cuts the longer of the two groups of nodes in the loss; here all are used.

    Arguments:
        exposure_weight: The weight :math:`\lambda` of the margins.
        num_propagations: The number of steps :math:`K`.
        self_weight: The weight :math:`\alpha` of the node itself.

    The others are those of EnergyFT and :class:`~degem.detectors.backbone.GCNDetector`.

    Example:
        >>> import numpy as np
        >>> from degem import Graph, NodeSet
        >>> graph = Graph.from_arrays(
        ...     features=np.eye(20), edges=[(i, i + 2) for i in range(18)], labels=[0, 1] * 8 + [-1] * 4
        ... )
        >>> exposure = NodeSet(graph, np.arange(16, 20))
        >>> GNNSafePP(num_epochs=5).fit(graph, exposure=exposure).decision_function(graph).shape
        (20,)
    """

    exposure_weight: NonNegative = 1.0
    num_propagations: Depth = 2
    self_weight: Fraction = 0.5

    name: ClassVar[str] = "gnnsafe++"
    paper: ClassVar[str] = "Wu et al. 2023"

    def _energies(self, logits: Tensor, graph: Graph) -> Tensor:
        energy = logit_energy(logits, self.temperature)
        return propagate_energy(energy, graph.adjacency, num_steps=self.num_propagations, self_weight=self.self_weight)
