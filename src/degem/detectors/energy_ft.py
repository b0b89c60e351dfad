"""Energies parted by margins on exposure nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from degem.detectors.backbone import Layers
from degem.detectors.exposure import ExposureDetector, exposure_of
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.ops.energy import energy_margin_loss, logit_energy
from degem.parameters import NonNegative, Positive


@dataclass(kw_only=True, eq=False)
class EnergyFT(ExposureDetector):
    r"""Energy of a classifier trained with squared hinge margins on exposure nodes (Liu et al. 2020).

    The loss is cross-entropy plus :math:`\lambda` times :func:`~degem.ops.energy.energy_margin_loss`; the score
    is :math:`-T \log \sum_y e^{g_y / T}`. GNNSafe's benchmark picks exposure nodes by the indices of the *training*
    nodes and cuts the longer of the two groups; here the exposure nodes are used, all of them.

    Arguments:
        temperature: The temperature :math:`T`.
        exposure_weight: The weight :math:`\lambda`.
        margin_in: The margin :math:`m_{in}` that ID energies should stay below.
        margin_out: The margin :math:`m_{out}` that exposure energies should stay above.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.

    Example:
        >>> import numpy as np
        >>> from degem import Graph, NodeSet
        >>> graph = Graph.from_arrays(
        ...     features=np.eye(20), edges=[(i, i + 2) for i in range(18)], labels=[0, 1] * 8 + [-1] * 4
        ... )
        >>> EnergyFT(num_epochs=5).fit(graph, exposure=NodeSet(graph, np.arange(16, 20))).decision_function(graph).shape
        (20,)
    """

    temperature: Positive = 1.0
    exposure_weight: NonNegative = 0.1
    margin_in: float = -5.0
    margin_out: float = -1.0

    name: ClassVar[str] = "energy-ft"
    paper: ClassVar[str] = "Liu et al. 2020"

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
