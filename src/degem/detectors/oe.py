"""Outlier exposure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from degem.detectors.backbone import Layers
from degem.detectors.exposure import ExposureDetector, exposure_of
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.ops.energy import uniform_cross_entropy
from degem.parameters import NonNegative


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

    name: ClassVar[str] = "oe"
    paper: ClassVar[str] = "Hendrycks et al. 2019"

    def _exposure_loss(self, training: TrainingSet, inside: Tensor, outside: Tensor) -> Tensor:
        return self.exposure_weight * uniform_cross_entropy(outside[exposure_of(training).nodes])

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        return 1 - layers.logits.double().softmax(dim=1).amax(dim=1)
