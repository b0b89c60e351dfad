"""Detectors that also learn from nodes known to be out-of-distribution."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from degem.detectors.backbone import GCNDetector, Losses
from degem.detectors.split import TrainingSet
from degem.errors import GraphError
from degem.graph import Graph

if TYPE_CHECKING:
    from degem.nn.encoders_gnn import GCN

ExposureLoss = Callable[[Tensor, Tensor], Tensor]


@dataclass(kw_only=True, eq=False)
class ExposureDetector(GCNDetector):
    """The base of detectors whose classifier is also shown exposure nodes, of the same graph or of another."""

    needs_exposure: ClassVar[bool] = True

    @abstractmethod
    def _exposure_loss(self, training: TrainingSet, exposed: Graph) -> ExposureLoss:
        """The loss added to the cross-entropy, of the logits on the training graph and on the exposure graph."""

    def _losses(self, network: GCN, training: TrainingSet) -> Losses:
        exposed = exposure_graph(training)
        if exposed.num_features != self.num_features_:
            raise GraphError(
                f"the exposure graph has {exposed.num_features} feature columns, but the training graph has "
                f"{self.num_features_}: describe both by the same columns"
            )
        outside = self._tensors(exposed)
        classification = super()._losses(network, training)
        exposure = self._exposure_loss(training, exposed)

        def losses(logits: Tensor, epoch: int) -> dict[str, Tensor]:
            return {
                **classification(logits, epoch),
                "exposure": exposure(logits, network(outside.features, outside.adjacency)),
            }

        return losses


def exposure_graph(training: TrainingSet) -> Graph:
    """The graph that exposure nodes live in."""
    assert training.exposure is not None  # Detector.fit asks for it
    return training.exposure.graph


def exposure_nodes(training: TrainingSet) -> Tensor:
    """The indices of exposure nodes in their graph."""
    assert training.exposure is not None  # Detector.fit asks for it
    return torch.as_tensor(training.exposure.nodes)
