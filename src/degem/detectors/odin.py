"""ODIN: a hot softmax and a small step of the input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from degem.detectors.backbone import BackboneDetector, GivenOutputs, Layers
from degem.errors import ParameterError
from degem.graph import Graph
from degem.parameters import NonNegative, Positive

if TYPE_CHECKING:
    from degem.detectors.backbone import Network
    from degem.nn.encoders_gnn import GraphTensors


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
    """

    temperature: Positive = 1000.0
    perturbation: NonNegative = 0.0014

    name = "odin"

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        def loss(layers: Layers) -> Tensor:
            hot = layers.logits / self.temperature
            return functional.cross_entropy(hot, hot.argmax(dim=1), reduction="sum")

        moved = perturbed_layers(self.network_, self._tensors(graph), loss, magnitude=self.perturbation)
        return 1 - (moved.logits.double() / self.temperature).softmax(dim=1).amax(dim=1)


def perturbed_layers(
    network: Network, inputs: GraphTensors, loss: Callable[[Layers], Tensor], *, magnitude: float
) -> Layers:
    r"""The layers of a network after a small step of its input (Liang et al. 2018).

    .. math:: \tilde X = X - \varepsilon \, x_{rms} \operatorname{sign} \nabla_X \ell

    The gradient runs through the convolutions, so a node's features move for its neighbours' sake too. Features are
    dense here: a perturbation has no zeros. The step is in units of :math:`x_{rms}`, the root mean square of the
    features, as the published ones are steps of pixels of about unit scale. Taken as it is, a step for pixels moves the
    many near-empty columns of a bag of words by more than a row holds.

    Arguments:
        network: The network.
        inputs: The graph.
        loss: The loss :math:`\ell`, summed over nodes, as a function of the layers.
        magnitude: The step :math:`\varepsilon`, a share of the features' root mean square.
    """
    if isinstance(network, GivenOutputs) and magnitude > 0:
        raise ParameterError("a step of the input needs the network, and only its outputs are given: perturbation=0")
    features = inputs.features.to_dense().detach().clone().requires_grad_()
    *hidden, logits = network.layers(features, inputs.adjacency)
    (gradient,) = torch.autograd.grad(loss(Layers(tuple(hidden), logits)), features)
    with torch.no_grad():
        step = magnitude * features.square().mean().sqrt()
        *hidden, logits = network.layers(features - step * gradient.sign(), inputs.adjacency)
    return Layers(tuple(hidden), logits)
