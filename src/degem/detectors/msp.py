"""Maximum softmax probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from degem.detectors.backbone import BackboneDetector, Layers
from degem.graph import Graph


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

    name: ClassVar[str] = "msp"
    paper: ClassVar[str] = "Hendrycks & Gimpel 2017"

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        return 1 - layers.logits.double().softmax(dim=1).amax(dim=1)
