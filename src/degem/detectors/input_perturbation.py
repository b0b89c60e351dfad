"""Features moved a little, through the graph, before they are scored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from degem.detectors.backbone import Layers
from degem.errors import ParameterError
from degem.nn.given_outputs import GivenOutputs

if TYPE_CHECKING:
    from degem.detectors.backbone import Network
    from degem.nn.encoders_gnn import GraphTensors


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
