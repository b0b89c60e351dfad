"""Attention that separates inliers from outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from degem.detectors.base import ScoreResult
from degem.detectors.network import NetworkDetector
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.nn.attention import Attended, OODGATNetwork
from degem.ops.adjacency import Edges, looped_edges
from degem.ops.losses import uniform_cross_entropy
from degem.parameters import Count, Depth, Dropout, Fraction, NonNegative, Positive, Width
from degem.training import History, OnProgress, descend, evaluating, seeded, train


@dataclass(kw_only=True, eq=False)
class OODGAT(NetworkDetector):
    r"""The attention :math:`\sigma(\bar a)`, averaged over layers and heads, of OODGAT (Song & Wang 2022).

    The layers are :class:`~degem.nn.attention.OODGATLayer`. Beside the cross-entropy the loss has three terms over all
    nodes of the graph, whose weights decay as :math:`0.9^{t/100}`:

    - consistency: :math:`-\cos(\sigma(\bar a), \sigma(\text{standardised entropy}))`, the mean of both layers;
    - entropy: cross-entropy from uniform on nodes whose attention is above ``margin``;
    - discrepancy: :math:`-\cos(\bar a^{(1)}, \bar a^{(2)})` between the layers.

    Settings are the authors' for Cora. They choose the epoch on validation nodes, OOD ones among them; here the number
    of epochs is fixed.

    Arguments:
        hidden_dim: Width of each head of the first layer.
        num_heads: Heads of both layers.
        consistency_weight: Weight of the consistency term.
        entropy_weight: Weight of the entropy term.
        discrepancy_weight: Weight of the discrepancy term.
        margin: The attention above which a node is taken for an outlier.
        dropout: Share of features and hidden units dropped in training.
        edge_dropout: Share of attention weights dropped in training.
        learning_rate: Adam's step size.
        num_epochs: Full-batch steps.
        normalize_features: Whether rows of features are scaled to unit length.
    """

    hidden_dim: Width = 32
    num_heads: Depth = 4
    consistency_weight: NonNegative = 2.0
    entropy_weight: NonNegative = 0.05
    discrepancy_weight: NonNegative = 0.005
    margin: Fraction = 0.6
    dropout: Dropout = 0.5
    edge_dropout: Dropout = 0.6
    learning_rate: Positive = 0.01
    num_epochs: Count = 200
    normalize_features: bool = True

    name = "oodgat"

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        (features, edges), (nodes, labels) = self._inputs(training.graph), self._labelled(training)
        with seeded(training.seed):
            network = self.network_ = self._new_network(training.num_classes)
            optimiser = torch.optim.Adam(network.parameters(), lr=self.learning_rate)

            def step(epoch: int) -> dict[str, float]:
                layers = network(features, edges)
                fade = 0.9 ** (0.01 * epoch)
                losses = {name: fade * term for name, term in self._regularisation(layers).items()}
                losses["classification"] = functional.cross_entropy(layers[1].output[nodes], labels)
                return descend(optimiser, losses)

            history = train(step, self.num_epochs, on_progress=on_progress, rows_per_step=training.graph.num_nodes)
        network.eval()
        return history

    def _regularisation(self, layers: tuple[Attended, Attended]) -> dict[str, Tensor]:
        logits = layers[1].output
        entropy = -(logits.softmax(dim=1) * logits.log_softmax(dim=1)).sum(dim=1)
        doubt = ((entropy - entropy.mean()) / entropy.std().clamp(min=1e-12)).sigmoid()
        first, second = (layer.attention.mean(dim=1) for layer in layers)
        agreement = [functional.cosine_similarity(mean.sigmoid(), doubt, dim=0) for mean in (first, second)]
        outliers = outlyingness(layers).detach() >= self.margin
        uniform = uniform_cross_entropy(logits[outliers]) if outliers.any() else logits.new_zeros(())
        return {
            "consistency": -self.consistency_weight * torch.stack(agreement).mean(),
            "entropy": self.entropy_weight * uniform,
            "discrepancy": -self.discrepancy_weight * functional.cosine_similarity(first, second, dim=0),
        }

    def _score(self, graph: Graph) -> ScoreResult:
        layers = self._layers(graph)
        return ScoreResult(
            outlyingness(layers).numpy(force=True),
            layers[1].output.softmax(dim=1).numpy(force=True),
        )

    def embed(self, graph: Any, *, nodes: ArrayLike | None = None) -> NDArray[np.float32]:
        """The output of the first layer; with ``nodes``, indices, of these only."""
        latents = functional.elu(self._layers(self._checked(graph))[0].output).numpy(force=True)
        return np.asarray(latents if nodes is None else latents[np.asarray(nodes)])

    def _layers(self, graph: Graph) -> tuple[Attended, Attended]:
        features, edges = self._inputs(graph)
        with torch.no_grad(), evaluating(self.network_):
            layers: tuple[Attended, Attended] = self.network_(features, edges)
        return layers

    def _new_network(self, num_classes: int) -> OODGATNetwork:
        return OODGATNetwork(
            self.num_features_,
            self.hidden_dim,
            num_classes,
            num_heads=self.num_heads,
            dropout=self.dropout,
            edge_dropout=self.edge_dropout,
        ).to(self.device)

    def _inputs(self, graph: Graph) -> tuple[Tensor, Edges]:
        # Slow to load, and a detector that is only described does without.
        from degem.nn.encoders_gnn import feature_tensor

        features = feature_tensor(graph, normalize_features=self.normalize_features, device=self.device)
        return features, looped_edges(graph.adjacency, self.device)


def outlyingness(layers: tuple[Attended, Attended]) -> Tensor:
    r"""The mean attention of both layers' heads, after the sigmoid: near 1 for outliers."""
    return torch.cat([layer.attention for layer in layers], dim=1).double().mean(dim=1).sigmoid()
