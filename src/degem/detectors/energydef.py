"""Node energies learnt without classes, against nodes that Langevin steps make up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from degem.detectors.base import ScoreResult
from degem.detectors.network import NetworkDetector
from degem.detectors.split import TrainingSet
from degem.errors import GraphError
from degem.graph import Graph
from degem.nn.gpr_energy import GPREnergy
from degem.ops.langevin import LangevinSettings, fresh_chains, langevin
from degem.ops.losses import contrastive_divergence
from degem.parameters import Count, Depth, Dropout, NonNegative, Positive, Width
from degem.training import History, OnProgress, descend, evaluating, seeded, train

if TYPE_CHECKING:
    from degem.nn.encoders_gnn import GraphTensors

CLIP = 5.0  # the largest norm of a gradient


@dataclass(kw_only=True, eq=False)
class EnergyDef(NetworkDetector):
    r"""The energy of a graph network trained by contrastive divergence (Gong & Sun 2024). It needs no labels.

    In each epoch some training nodes get features that Langevin steps have sampled from the energy, at their places in
    the graph, and the loss is the mean energy of the other training nodes minus that of the replaced ones. The network
    is :class:`~degem.nn.gpr_energy.GPREnergy`. As in the authors' program the energies carry no penalty, the paper's
    estimate of a sampled node's edges has no part in training, and chains start anew, for its buffer is never written
    to. The authors choose the epoch on validation nodes, OOD ones among them; here the number of epochs is fixed.

    Arguments:
        hidden_dim: Width of every layer.
        num_layers: Number of convolutions.
        dropout: Share of hidden units dropped in training.
        edge_dropout: Share of the adjacency's entries dropped in training.
        num_chains: Nodes replaced in each epoch, at most half of the training nodes.
        num_steps: Langevin steps a chain takes.
        step_size: Their size.
        noise_std: Standard deviation of the noise of one step.
        learning_rate: Adam's step size.
        weight_decay: Adam's weight decay.
        num_epochs: Full-batch steps.
        normalize_features: Whether rows of features are scaled to unit length.
    """

    hidden_dim: Width = 16
    num_layers: Depth = 2
    dropout: Dropout = 0.1
    edge_dropout: Dropout = 0.25
    num_chains: Count = 64
    num_steps: Count = 20
    step_size: Positive = 1.0
    noise_std: NonNegative = 0.01
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 1e-3
    num_epochs: Count = 200
    normalize_features: bool = True

    name = "energydef"

    slope: ClassVar[float] = 0.0

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        if len(training.nodes) < 2:
            raise GraphError(f"{type(self).__name__} needs at least two in-distribution nodes to train on")
        inputs, nodes = self._tensors(training.graph), torch.from_numpy(training.nodes).to(self.device)
        generator = torch.Generator(self.device).manual_seed(training.seed)
        count = min(self.num_chains, len(nodes) // 2)
        with seeded(training.seed):
            network = self.network_ = self._new_network()
            optimiser = torch.optim.Adam(network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)

            def step(_: int) -> dict[str, float]:
                order = torch.randperm(len(nodes), generator=generator, device=self.device)
                replaced, known = nodes[order[:count]], nodes[order[count:]]
                sampled = self._sample(network, inputs, replaced, generator)
                projected = network.project(inputs.features).index_copy(0, replaced, network.project(sampled))
                losses = self._losses(network(projected, inputs.adjacency), known, replaced)
                return descend(optimiser, losses, clip=CLIP)

            network.train()
            history = train(step, self.num_epochs, on_progress=on_progress, rows_per_step=training.graph.num_nodes)
        network.eval()
        return history

    def _sample(self, network: GPREnergy, inputs: GraphTensors, replaced: Tensor, generator: torch.Generator) -> Tensor:
        """Features for the replaced nodes, sampled from the energy as it is."""
        settings = LangevinSettings(num_steps=self.num_steps, step_size=self.step_size, noise_std=self.noise_std)
        start = fresh_chains(len(replaced), self.num_features_, settings, generator)
        with evaluating(network):
            return langevin(start, self._gradient(network, inputs, replaced), settings, generator)

    def _gradient(self, network: GPREnergy, inputs: GraphTensors, replaced: Tensor) -> Callable[[Tensor], Tensor]:
        """The gradient of the replaced nodes' mean energy by their features."""
        with torch.no_grad():
            projected = network.project(inputs.features)

        def gradient(features: Tensor) -> Tensor:
            x = features.detach().requires_grad_()
            mixed = projected.index_copy(0, replaced, network.project(x))
            return torch.autograd.grad(network(mixed, inputs.adjacency)[replaced].mean(), x)[0]

        return gradient

    def _losses(self, energies: Tensor, known: Tensor, replaced: Tensor) -> dict[str, Tensor]:
        """What is minimised, from the energies of all nodes."""
        return {"energy": contrastive_divergence(energies[known], energies[replaced], penalty=0.0)}

    def _score(self, graph: Graph) -> ScoreResult:
        inputs = self._tensors(graph)
        with torch.no_grad(), evaluating(self.network_):
            energies: Tensor = self.network_(self.network_.project(inputs.features), inputs.adjacency)
        return ScoreResult(energies.numpy(force=True))

    def _new_network(self, num_classes: int = 0) -> GPREnergy:
        return GPREnergy(
            self.num_features_,
            self.hidden_dim,
            num_layers=self.num_layers,
            dropout=self.dropout,
            edge_dropout=self.edge_dropout,
            slope=self.slope,
        ).to(self.device)
