"""Features moved a little, through the graph, before they are scored."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from degem.detectors.backbone import Layers
from degem.nn.encoders_gnn import GCN, GraphTensors


def perturbed_layers(
    network: GCN, inputs: GraphTensors, loss: Callable[[Layers], Tensor], *, magnitude: float
) -> Layers:
    r"""The layers of a network at :math:`X - \varepsilon \operatorname{sign} \nabla_X \ell` (Liang et al. 2018).

    The gradient runs through the convolutions, so a node's features move for its neighbours' sake too. Features are
    dense here: a perturbation has no zeros.

    Arguments:
        network: The network.
        inputs: The graph.
        loss: The loss :math:`\ell`, summed over nodes, as a function of the layers.
        magnitude: The step :math:`\varepsilon`.
    """
    features = inputs.features.to_dense().detach().clone().requires_grad_()
    *hidden, logits = network.layers(features, inputs.adjacency)
    (gradient,) = torch.autograd.grad(loss(Layers(tuple(hidden), logits)), features)
    with torch.no_grad():
        *hidden, logits = network.layers(features - magnitude * gradient.sign(), inputs.adjacency)
    return Layers(tuple(hidden), logits)
