"""The graph classifier that several detectors read their scores off, trained once and shared.

MSP, ODIN, Mahalanobis, Energy, ResidualFlow, GNNSafe, kNN and GRASP differ only in what they make of the layers
of one trained GCN. Alone, each trains its own. To share, give several of them one :class:`BackboneCache` **before**
``fit``::

    cache = BackboneCache()
    for name in ("msp", "energy", "gnnsafe"):
        detector = Detector.registry[name](seed=0)
        if isinstance(detector, BackboneDetector):
            detector.share(cache)
        detector.fit(graph)
        detector.decision_function(graph), detector.decision_function(ood_graph)

The cache trains one network for each different (training set, seed, network settings) and runs one forward pass for
each network and :class:`~degem.Graph` *object* it is asked about. Scores are bit for bit those of detectors that do
not share. It keeps the networks, the graphs and their layers alive: drop it when a benchmark cell is done.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from degem.data.fingerprint import fingerprint
from degem.data.outputs import num_logits
from degem.detectors.base import ScoreResult
from degem.detectors.network import NetworkDetector
from degem.detectors.split import TrainingSet
from degem.errors import DegemError
from degem.graph import Graph
from degem.parameters import Count, Dropout, NonNegative, Positive, Width
from degem.training import History, OnProgress, descend, evaluating, seeded, train

if TYPE_CHECKING:
    from degem.nn.encoders_gnn import GCN, GraphTensors

Losses = Callable[[Tensor, int], dict[str, Tensor]]


@dataclass(frozen=True)
class Layers:
    """What one forward pass over a graph gives.

    Arguments:
        hidden: The output of each hidden layer, each of shape (n, d); the last is the penultimate one.
        logits: The class logits, of shape (n, C); without columns where embeddings alone were given.
    """

    hidden: tuple[Tensor, ...]
    logits: Tensor

    @property
    def latents(self) -> NDArray[np.float32]:
        """The penultimate layer."""
        return np.asarray(self.hidden[-1].numpy(force=True))


class GivenOutputs(nn.Module):
    """Stands where a trained network does, and gives what was given: see :func:`degem.wrap`.

    Arguments:
        num_logits: How many columns are logits, the first ones; the others are the penultimate layer.

    Example:
        >>> [tuple(layer.shape) for layer in GivenOutputs(3).layers(torch.ones(5, 7), torch.eye(5))]
        [(5, 4), (5, 3)]
    """

    def __init__(self, num_logits: int) -> None:
        super().__init__()
        self.num_logits = num_logits

    def layers(self, features: Tensor, adjacency: Tensor) -> list[Tensor]:
        """The penultimate layer, for which logits stand in where it was not given, and the logits."""
        logits, embeddings = features[:, : self.num_logits], features[:, self.num_logits :]
        return [embeddings if embeddings.shape[1] else logits, logits]


if TYPE_CHECKING:
    Network = GCN | GivenOutputs


class BackboneCache:
    """Networks and forward passes that detectors share; see the module's text."""

    def __init__(self) -> None:
        self._networks: dict[str, tuple[Network, History]] = {}
        self._layers: dict[tuple[int, int], tuple[Network, Graph, Layers]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._networks

    def network(self, key: str, make: Callable[[], tuple[Network, History]]) -> tuple[Network, History]:
        """The network of that key, made if it is not there."""
        if key not in self._networks:
            self._networks[key] = make()
        network, history = self._networks[key]
        return network, {name: list(values) for name, values in history.items()}

    def layers(self, network: Network, graph: Graph, make: Callable[[], Layers]) -> Layers:
        """The layers of that network on that graph object, made if they are not there."""
        key = (id(network), id(graph))
        if key not in self._layers:
            self._layers[key] = (network, graph, make())  # both kept, so that no other object takes their id
        return self._layers[key][2]


@dataclass(kw_only=True, eq=False)
class GCNDetector(NetworkDetector):
    """The base of detectors that train a GCN on the labels. It holds the settings of the network and its training.

    The settings are Kipf & Welling's (2017) with 64 hidden units, whatever the data, and the epoch is the last. The
    settings of GNNSafe's benchmark (batch norm, no dropout, weight decay 0.01) go with an epoch chosen on validation
    nodes, which calibrate here: at the last epoch they overfit a small training set such as Cora's. What batch norm
    does for them, training that does not depend on the scale of the features, rows of unit length do here.

    Arguments:
        hidden_dim: Width of the hidden layers.
        num_layers: Number of convolutions, the last included.
        dropout: Share of hidden units dropped in training.
        batch_norm: Whether hidden layers are batch-normalised.
        learning_rate: Adam's step size.
        weight_decay: Adam's weight decay.
        num_epochs: Full-batch steps.
        normalize_features: Whether rows of features are scaled to unit length.
    """

    hidden_dim: Width = 64
    num_layers: Annotated[int, Field(ge=2, le=1_000)] = 2
    dropout: Dropout = 0.5
    batch_norm: bool = False
    learning_rate: Positive = 0.01
    weight_decay: NonNegative = 5e-4
    num_epochs: Count = 200
    normalize_features: bool = True

    prefix: ClassVar[str] = "network."

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        self.network_, history = self._trained(training, on_progress)
        self._read(training)
        return history

    def _read(self, training: TrainingSet) -> None:
        """Learn from the network what else the score needs; of most methods nothing."""

    def _trained(self, training: TrainingSet, on_progress: OnProgress) -> tuple[Network, History]:
        """A network trained on :meth:`_losses`."""
        with seeded(training.seed):
            network = self.network_ = self._new_network(training.num_classes)  # the oracle scores it while it trains
            inputs, losses = self._tensors(training.graph), self._losses(network, training)
            history = self._optimise(network, inputs, losses, self.num_epochs, on_progress)
        return network, history

    def _losses(self, network: GCN, training: TrainingSet) -> Losses:
        """What is minimised, as a function of the logits on the training graph and the epoch: the cross-entropy."""
        nodes, labels = self._labelled(training)
        return lambda logits, _: {"classification": functional.cross_entropy(logits[nodes], labels)}

    def _optimise(
        self, network: GCN, inputs: GraphTensors, losses: Losses, num_epochs: int, on_progress: OnProgress
    ) -> History:
        """Train ``network`` by full-batch steps of Adam on the sum of ``losses``."""
        optimiser = torch.optim.Adam(network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)

        def step(epoch: int) -> dict[str, float]:
            return descend(optimiser, losses(network(inputs.features, inputs.adjacency), epoch))

        network.train()
        history = train(step, num_epochs, on_progress=on_progress, rows_per_step=inputs.features.shape[0])
        network.eval()
        return history

    def _layers(self, graph: Graph) -> Layers:
        """The layers of the trained network on a graph."""
        with torch.no_grad(), evaluating(self.network_):
            inputs = self._tensors(graph)
            *hidden, logits = self.network_.layers(inputs.features, inputs.adjacency)
        return Layers(tuple(hidden), logits)

    def _score(self, graph: Graph) -> ScoreResult:
        layers = self._layers(graph)
        scores = self._score_layers(layers, graph).numpy(force=True)
        return ScoreResult(scores, self._probabilities(layers).numpy(force=True) if layers.logits.shape[1] else None)

    @abstractmethod
    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        """One score a node, higher = more OOD."""

    def _probabilities(self, layers: Layers) -> Tensor:
        """The class probabilities: the softmax of the logits."""
        return layers.logits.softmax(dim=1)

    def _score_in_training(self, training: TrainingSet, graph: Graph) -> ScoreResult:
        if hasattr(self, "network_"):
            self._read(training)
        return super()._score_in_training(training, graph)

    def embed(self, graph: Any, *, nodes: ArrayLike | None = None) -> NDArray[np.float32]:
        """The penultimate layer of each node; with ``nodes``, indices, of these only."""
        latents = self._layers(self._checked(graph)).latents
        return latents if nodes is None else latents[np.asarray(nodes)]

    def _new_network(self, num_classes: int) -> GCN:
        from degem.nn.encoders_gnn import GCN  # slow to load, and a detector that is only described does without

        return GCN(
            self.num_features_,
            self.hidden_dim,
            num_classes,
            num_layers=self.num_layers,
            dropout=self.dropout,
            batch_norm=self.batch_norm,
        ).to(self.device)


@dataclass(kw_only=True, eq=False)
class BackboneDetector(GCNDetector):
    """The base of detectors that read a plain GCN classifier, so that several can share one: see the module's text.

    Fitted on a wrapped graph they read the outputs of the user's own network: see :func:`degem.wrap`.
    """

    reads_logits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._cache: BackboneCache | None = None

    def share(self, cache: BackboneCache) -> Self:
        """Take the network and its forward passes from ``cache`` (and put them there), from the next ``fit`` on."""
        self._cache = cache
        return self

    @property
    def latent_dim_(self) -> int:
        """The width of the penultimate layer."""
        count = num_logits(self.feature_names_)
        return self.hidden_dim if count is None else self.num_features_ - count or count

    def _trained(self, training: TrainingSet, on_progress: OnProgress) -> tuple[Network, History]:
        count = num_logits(self.feature_names_)
        if count is not None:
            if self.reads_logits and count == 0:
                raise DegemError(f"{self.name} reads logits, and embeddings alone were given: give logits too")
            self.classes_ = tuple(range(count))  # of a class without a training node the network may be sure, too
            return GivenOutputs(count), {}
        if self._cache is None:
            return super()._trained(training, on_progress)
        make, key = super()._trained, self._fingerprint(training)
        known = key in self._cache
        network, history = self._cache.network(key, lambda: make(training, on_progress))
        self.spared_seconds_ = history["seconds"][-1] if known else 0.0  # alone it would have trained that long
        return network, history

    def _layers(self, graph: Graph) -> Layers:
        if self._cache is None:
            return super()._layers(graph)
        make = super()._layers
        return self._cache.layers(self.network_, graph, lambda: make(graph))

    def _fingerprint(self, training: TrainingSet) -> str:
        """Equal for equal training sets, seeds and network settings."""
        settings = [(field.name, getattr(self, field.name)) for field in fields(BackboneDetector)]
        return fingerprint(settings, training.graph, training.nodes)

    def _restore(self, state: dict[str, Tensor]) -> None:
        count = num_logits(self.feature_names_)
        if count is None:
            super()._restore(state)
        else:
            self.network_ = GivenOutputs(count)

    def _normalizes(self) -> bool:
        return super()._normalizes() and num_logits(self.feature_names_) is None  # outputs are what they are
