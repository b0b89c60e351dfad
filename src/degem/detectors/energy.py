"""The energy of a classifier's logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from degem.detectors.backbone import BackboneDetector, Layers
from degem.graph import Graph
from degem.ops.energy import logit_energy
from degem.parameters import Positive


@dataclass(kw_only=True, eq=False)
class Energy(BackboneDetector):
    r"""The free energy of the logits, :math:`-T \log \sum_y e^{g_y / T}` (Liu et al. 2020).

    Arguments:
        temperature: The temperature :math:`T`.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.

    Example:
        >>> import numpy as np
        >>> from degem import Graph
        >>> graph = Graph.from_arrays(features=np.eye(20), edges=[(i, i + 2) for i in range(18)], labels=[0, 1] * 10)
        >>> Energy(num_epochs=5).fit(graph).decision_function(graph).shape
        (20,)
    """

    temperature: Positive = 1.0

    name: ClassVar[str] = "energy"
    paper: ClassVar[str] = "Liu et al. 2020"

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        return logit_energy(layers.logits.double(), self.temperature)
