"""The distance to the k-th nearest training node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from degem.detectors.backbone import BackboneDetector, Layers
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.model_file import tensor_of
from degem.parameters import Count


@dataclass(kw_only=True, eq=False)
class KNN(BackboneDetector):
    r"""The distance of unit-length penultimate latents to the :math:`k`-th nearest training node (Sun et al. 2022).

    Arguments:
        num_neighbors: The number :math:`k`; all training nodes where there are fewer.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.

    Example:
        >>> from degem import Graph
        >>> graph = Graph.from_arrays(features=np.eye(20), edges=[(i, i + 2) for i in range(18)], labels=[0, 1] * 10)
        >>> KNN(num_epochs=5).fit(graph).decision_function(graph).shape
        (20,)
    """

    num_neighbors: Count = 10

    reads_logits: ClassVar[bool] = False
    name: ClassVar[str] = "knn"
    paper: ClassVar[str] = "Sun et al. 2022"

    def _read(self, training: TrainingSet) -> None:
        from sklearn.preprocessing import normalize  # slow to load, and a detector that is only described does without

        latents = self._layers(training.graph).latents[training.nodes]
        self.bank_: NDArray[np.float32] = normalize(latents)

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        from sklearn.neighbors import NearestNeighbors
        from sklearn.preprocessing import normalize

        k = min(self.num_neighbors, len(self.bank_))
        distances, _ = NearestNeighbors(n_neighbors=k).fit(self.bank_).kneighbors(normalize(layers.latents))
        return torch.from_numpy(distances[:, -1])

    def _state(self) -> dict[str, Tensor]:
        return {**super()._state(), "bank": torch.from_numpy(self.bank_)}

    def _restore(self, state: dict[str, Tensor]) -> None:
        super()._restore(state)
        self.bank_ = tensor_of(state, "bank", torch.float32, None, self.latent_dim_).numpy()
