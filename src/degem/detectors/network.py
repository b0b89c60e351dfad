"""Detectors that train one network on a whole graph at a time."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from degem.detectors.base import Detector, ScoreResult
from degem.detectors.restoring import restored
from degem.detectors.split import TrainingSet
from degem.graph import Graph

if TYPE_CHECKING:
    from degem.nn.encoders_gnn import GraphTensors


class NetworkDetector(Detector):
    """The base of detectors whose score is read off ``network_``; what is saved is that network.

    ``network_`` is set before it is trained, so that the oracle can score it meanwhile.
    """

    normalize_features: bool
    network_: Any

    prefix: ClassVar[str] = ""  # of the network's tensors in a model file

    @abstractmethod
    def _new_network(self, num_classes: int) -> Any:
        """The network as it is before training, on the detector's device."""

    def _score_in_training(self, training: TrainingSet, graph: Graph) -> ScoreResult:
        return self._score(graph) if hasattr(self, "network_") else super()._score_in_training(training, graph)

    def _state(self) -> dict[str, Tensor]:
        return {self.prefix + name: value for name, value in self.network_.state_dict().items()}

    def _restore(self, state: dict[str, Tensor]) -> None:
        self.network_ = restored(self, lambda: self._new_network(len(self.classes_)), state, self.prefix)

    def _labelled(self, training: TrainingSet) -> tuple[Tensor, Tensor]:
        """The training nodes that have a label, and their labels."""
        nodes = training.labelled_nodes
        return torch.from_numpy(nodes).to(self.device), torch.from_numpy(training.graph.labels[nodes]).to(self.device)

    def _normalizes(self) -> bool:
        """Whether rows of features are scaled to unit length."""
        return self.normalize_features

    def _tensors(self, graph: Graph) -> GraphTensors:
        """A graph as the network reads it."""
        from degem.nn.encoders_gnn import graph_tensors  # slow to load, and a described detector does without

        return graph_tensors(graph, normalize_features=self._normalizes(), device=self.device)
