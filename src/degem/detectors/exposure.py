"""Detectors that also learn from nodes known to be out-of-distribution."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from degem.detectors.backbone import GCNDetector, Losses
from degem.detectors.split import TrainingSet
from degem.errors import GraphError
from degem.graph import NodeSet

if TYPE_CHECKING:
    from degem.nn.encoders_gnn import GCN


@dataclass(kw_only=True, eq=False)
class ExposureDetector(GCNDetector):
    """The base of detectors whose classifier is also shown exposure nodes, of the same graph or of another."""

    needs_exposure: ClassVar[bool] = True

    @abstractmethod
    def _exposure_loss(self, training: TrainingSet, inside: Tensor, outside: Tensor) -> Tensor:
        """The loss added to the cross-entropy, of the logits on the training graph and on the exposure graph."""

    def _losses(self, network: GCN, training: TrainingSet) -> Losses:
        exposed = exposure_of(training).graph
        if exposed.num_features != self.num_features_:
            raise GraphError(
                f"the exposure graph has {exposed.num_features} feature columns, but the training graph has "
                f"{self.num_features_}: describe both by the same columns"
            )
        outside = self._tensors(exposed)
        classification = super()._losses(network, training)

        def losses(logits: Tensor, epoch: int) -> dict[str, Tensor]:
            exposure = self._exposure_loss(training, logits, network(outside.features, outside.adjacency))
            return {**classification(logits, epoch), "exposure": exposure}

        return losses


def exposure_of(training: TrainingSet) -> NodeSet:
    """The exposure nodes."""
    assert training.exposure is not None  # Detector.fit asks for it
    return training.exposure
