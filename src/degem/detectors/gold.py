"""A classifier and a detector of energies, trained against latents that a diffusion model makes up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from degem.detectors.backbone import GCNDetector, Layers
from degem.detectors.base import ScoreResult
from degem.detectors.restoring import restored
from degem.detectors.split import TrainingSet
from degem.errors import GraphError, NotFittedError
from degem.graph import Graph
from degem.nn.diffusion import Diffusion
from degem.ops.losses import energy_margin_loss, logit_energy
from degem.parameters import Count, Depth, Dropout, Fraction, NonNegative, Positive, Width
from degem.propagation.smoothing import propagate_energy
from degem.training import History, OnProgress, descend, evaluating, seeded, train

if TYPE_CHECKING:
    from degem.nn.encoders_gnn import GCN, GraphTensors


@dataclass(kw_only=True, eq=False)
class GOLD(GCNDetector):
    r"""Graph OOD detection by implicit adversarial latent generation (Wang et al. 2025).

    After ``num_epochs`` of cross-entropy come rounds. In each a :class:`~degem.nn.diffusion.Diffusion` learns the
    hidden layer of every node and draws latents that stand for OOD nodes; the classifier's last layer gives them logits
    on the graph's edges; and the classifier takes some steps, with a perceptron that reads the propagated energies
    :math:`e`:

    .. math:: L = \mathrm{CE} + \lambda_e \left(\overline{(e - m_{in})_+^2} + \overline{(m_{out} - \tilde e)_+^2}\right)
        + \lambda_d \mathrm{CE}_d + \lambda_m \left(\overline{(u - e)_+^2} + \overline{(\tilde e - \tilde u)_+^2}\right)

    over training nodes, where a tilde marks the latents made up, :math:`\mathrm{CE}_d` tells the two apart by
    :math:`e`, and :math:`u`, the score, is the propagated :math:`-\log\sum\exp` of the perceptron's two outputs.
    Settings are the authors' for the structure shift of Cora, with the steps of diffusion training that they take on
    Twitch; they choose all by dataset and shift, and their program runs rounds beyond those that they list.

    Arguments:
        num_propagations: Steps of the propagation of energies.
        self_weight: The weight of the node itself in it.
        margin_in: The margin :math:`m_{in}` that ID energies should stay below.
        margin_out: The margin :math:`m_{out}` that energies made up should stay above.
        margin_weight: The weight :math:`\lambda_e`.
        detector_weight: The weight :math:`\lambda_d`.
        divergence_weight: The weight :math:`\lambda_m`.
        detector_dim: Width of the perceptron's two hidden layers.
        num_rounds: Rounds of drawing latents and training against them.
        round_steps: Steps of the classifier in each round.
        num_diffusion_steps: Steps of the diffusion.
        diffusion_dim: Width of the diffusion model.
        diffusion_epochs: Steps of its training in each round.
        side_learning_rate: Adam's step size for it and for the perceptron.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.
    """

    num_epochs: Count = 100
    batch_norm: bool = True
    dropout: Dropout = 0.0
    weight_decay: NonNegative = 0.0
    num_propagations: Depth = 2
    self_weight: Fraction = 0.5
    margin_in: float = -5.0
    margin_out: float = -3.0
    margin_weight: NonNegative = 1.0
    detector_weight: NonNegative = 1.0
    divergence_weight: NonNegative = 1.0
    detector_dim: Width = 512
    num_rounds: Count = 5
    round_steps: Count = 8
    num_diffusion_steps: Count = 600
    diffusion_dim: Width = 256
    diffusion_epochs: Count = 200
    side_learning_rate: Positive = 1e-3

    name = "gold"

    def _trained(self, training: TrainingSet, on_progress: OnProgress) -> tuple[GCN, History]:
        if training.graph.num_nodes < 2:
            raise GraphError("GOLD needs at least two nodes to train on: one has no batch to be normalised by")
        inputs = self._tensors(training.graph)
        with seeded(training.seed):
            network = self.network_ = self._new_network(training.num_classes)
            plain = self._losses(network, training)
            warmup = self._optimise(network, inputs, plain, self.num_epochs, on_progress)
            detector = self.detector_ = self._new_detector()
            diffusion = Diffusion(self.hidden_dim, self.diffusion_dim, num_steps=self.num_diffusion_steps)
            steps = self._rounds(network, detector, diffusion.to(self.device), inputs, training)
            history = train(lambda _: next(steps), self.num_rounds * self.round_steps, on_progress=on_progress)
        network.eval()
        detector.eval()
        return network, {**{f"warmup_{name}": values for name, values in warmup.items()}, **history}

    def _rounds(
        self, network: GCN, detector: nn.Module, diffusion: Diffusion, inputs: GraphTensors, training: TrainingSet
    ) -> Iterator[dict[str, float]]:
        """The losses of each step of the classifier, round after round."""
        parts: list[dict[str, Any]] = [
            {"params": network.parameters()},
            {"params": detector.parameters(), "lr": self.side_learning_rate},
        ]
        optimiser = torch.optim.Adam(parts, lr=self.learning_rate, weight_decay=self.weight_decay)
        generator = torch.optim.Adam(diffusion.parameters(), lr=self.side_learning_rate)
        for _ in range(self.num_rounds):
            network.eval()
            with torch.no_grad():
                latents = network.layers(inputs.features, inputs.adjacency)[-2]
            for _ in range(self.diffusion_epochs):
                descend(generator, {"diffusion": diffusion.loss(latents)})
            made_up = diffusion.sample(len(latents))
            network.train()
            detector.train()
            for _ in range(self.round_steps):
                logits = network(inputs.features, inputs.adjacency)
                outside = network.convolutions[-1](made_up, inputs.adjacency)
                yield descend(optimiser, self._adversarial(logits, outside, detector, training))

    def _adversarial(
        self, logits: Tensor, made_up: Tensor, detector: nn.Module, training: TrainingSet
    ) -> dict[str, Tensor]:
        """The weighed losses of the logits of the graph's latents and of those made up."""
        graph, known = training.graph, torch.from_numpy(training.nodes).to(self.device)
        labelled, labels = self._labelled(training)
        energies = [self._spread(logit_energy(each), graph) for each in (logits, made_up)]
        readings = detector(torch.cat(energies)[:, None]).split(graph.num_nodes)
        inside, outside = (self._spread(logit_energy(each), graph)[known] for each in readings)
        real, fake = (energy[known] for energy in energies)
        told = detector(torch.cat([real, fake])[:, None])
        truth = torch.cat([torch.ones(len(known)), torch.zeros(len(known))]).long().to(self.device)
        divergence = (inside - real).relu().square().mean() + (fake - outside).relu().square().mean()
        margins = energy_margin_loss(real, fake, margin_in=self.margin_in, margin_out=self.margin_out)
        return {
            "classification": functional.cross_entropy(logits[labelled], labels),
            "margins": self.margin_weight * margins,
            "detection": self.detector_weight * functional.cross_entropy(told, truth),
            "divergence": self.divergence_weight * divergence,
        }

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        energy = self._spread(logit_energy(layers.logits), graph)
        with torch.no_grad():
            reading = self.detector_(energy[:, None])
        return self._spread(logit_energy(reading), graph)

    def _score_in_training(self, training: TrainingSet, graph: Graph) -> ScoreResult:
        if not hasattr(self, "detector_"):
            raise NotFittedError("a GOLD has no score until its detector is trained")
        with evaluating(self.detector_):
            return super()._score_in_training(training, graph)

    def _spread(self, energy: Tensor, graph: Graph) -> Tensor:
        return propagate_energy(energy, graph.adjacency, num_steps=self.num_propagations, self_weight=self.self_weight)

    def _state(self) -> dict[str, Tensor]:
        return super()._state() | {f"detector.{name}": value for name, value in self.detector_.state_dict().items()}

    def _restore(self, state: dict[str, Tensor]) -> None:
        super()._restore(state)
        self.detector_ = restored(self, self._new_detector, state, "detector.")

    def _new_detector(self) -> nn.Sequential:
        layers: list[nn.Module] = []
        for width in (1, self.detector_dim):
            layers += [nn.Linear(width, self.detector_dim), nn.ReLU(), nn.BatchNorm1d(self.detector_dim)]
        return nn.Sequential(*layers, nn.Linear(self.detector_dim, 2)).to(self.device)
