"""ODIN: a hot softmax and a small step of the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from degem.detectors.backbone import BackboneDetector, Layers
from degem.detectors.input_perturbation import perturbed_layers
from degem.graph import Graph
from degem.parameters import NonNegative, Positive


@dataclass(kw_only=True, eq=False)
class ODIN(BackboneDetector):
    r"""The largest softmax at a high temperature, after a step towards the predicted class (Liang et al. 2018).

    .. math:: s = 1 - \max_y \operatorname{softmax}(g(\tilde X) / T)_y, \quad
        \tilde X = X - \varepsilon \, x_{rms} \operatorname{sign}(-\nabla_X \log p_{\hat y}(X; T))

    The benchmarks that DeGEM and GNNSafe were published with return :math:`-\max p` where higher must mean ID, so their
    ODIN figures are turned over: 3.5 AUROC on Amazon-Photo is 96.5. Here higher is OOD.

    Arguments:
        temperature: The temperature :math:`T`.
        perturbation: The step :math:`\varepsilon`, in units of the features' root mean square :math:`x_{rms}`.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.

    Example:
        >>> from degem import Graph
        >>> graph = Graph.from_arrays(features=np.eye(20), edges=[(i, i + 2) for i in range(18)], labels=[0, 1] * 10)
        >>> ODIN(num_epochs=5).fit(graph).decision_function(graph).shape
        (20,)
    """

    temperature: Positive = 1000.0
    perturbation: NonNegative = 0.0014

    name: ClassVar[str] = "odin"
    paper: ClassVar[str] = "Liang et al. 2018"

    def _score_layers(self, layers: Layers, graph: Graph) -> NDArray[np.floating[Any]]:
        def loss(layers: Layers) -> Tensor:
            hot = layers.logits / self.temperature
            return functional.cross_entropy(hot, hot.argmax(dim=1), reduction="sum")

        moved = perturbed_layers(self.network_, self._tensors(graph), loss, magnitude=self.perturbation)
        probabilities = (moved.logits.double() / self.temperature).softmax(dim=1)
        return np.asarray(1 - probabilities.amax(dim=1).numpy(force=True))
