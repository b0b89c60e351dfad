"""Distances to training nodes in every layer, each reduced to its principal components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from degem.detectors.backbone import BackboneDetector, Layers
from degem.detectors.split import TrainingSet
from degem.errors import GraphError
from degem.graph import Graph
from degem.parameters import Count, Fraction
from degem.training import History, OnProgress


@dataclass(frozen=True)
class _LayerBank:
    """What one layer remembers of the training nodes: where to centre, how to project, the projections, their scale."""

    mean: NDArray[np.float64]
    components: NDArray[np.float64]
    projections: NDArray[np.float64]
    scale: NDArray[np.float64]

    def distances(self, values: NDArray[np.floating[Any]], k: int) -> NDArray[np.float64]:
        """The distance of each row to its k-th nearest training row, in units of the training rows' own."""
        # Slow to load, and a detector that is only described does without.
        from sklearn.neighbors import NearestNeighbors

        neighbours = NearestNeighbors(n_neighbors=k).fit(self.projections)
        distances, _ = neighbours.kneighbors((values - self.mean) @ self.components.T)
        return np.asarray(distances[:, -1] / self.scale)


@dataclass(kw_only=True, eq=False)
class JLDE(BackboneDetector):
    r"""The :math:`k`-nearest-neighbour distance, summed over layers, each on its own principal components.

    .. math:: s = \sum_l \frac{d_k(P_l h^{(l)})}{\bar d_l}

    :math:`d_k` is the distance to the :math:`k`-th nearest training node, and :math:`P_l` keeps
    ``explained_variance`` of layer :math:`l` (hidden layers and logits), and :math:`\bar d_l` is the training nodes'
    mean distance to each other's :math:`k`-th, which puts the layers on one scale. No program or paper of the
    authors' was at hand: this follows the outline "PCA and kNN in every layer", and its settings are ours.

    Arguments:
        num_neighbors: The number :math:`k`; all training nodes but one where there are fewer.
        explained_variance: The share of each layer's variance that is kept.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.

    Example:
        >>> from degem import Graph
        >>> graph = Graph.from_arrays(features=np.eye(20), edges=[(i, i + 2) for i in range(18)], labels=[0, 1] * 10)
        >>> JLDE(num_epochs=5).fit(graph).decision_function(graph).shape
        (20,)
    """

    num_neighbors: Count = 10
    explained_variance: Fraction = 0.95

    name: ClassVar[str] = "jlde"
    paper: ClassVar[str] = "per-layer PCA + kNN"

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        if len(training.nodes) < 2:
            raise GraphError("JLDE compares training nodes with each other: it needs at least two, and there is one")
        return super()._fit(training, on_progress)

    def _read(self, training: TrainingSet) -> None:
        layers = self._layers(training.graph)
        self.banks_ = [self._bank(layer[training.nodes]) for layer in _arrays(layers)]

    def _bank(self, values: NDArray[np.float64]) -> _LayerBank:
        from sklearn.decomposition import PCA
        from sklearn.neighbors import NearestNeighbors

        components = PCA(svd_solver="full").fit(values)
        kept = np.searchsorted(np.cumsum(components.explained_variance_ratio_), self.explained_variance) + 1
        basis = components.components_[:kept]
        projections = (values - components.mean_) @ basis.T
        apart, _ = NearestNeighbors(n_neighbors=self._k(len(values))).fit(projections).kneighbors()
        return _LayerBank(components.mean_, basis, projections, np.array([max(apart[:, -1].mean(), 1e-12)]))

    def _k(self, num_training_nodes: int) -> int:
        return min(self.num_neighbors, num_training_nodes - 1)

    def _score_layers(self, layers: Layers, graph: Graph) -> NDArray[np.floating[Any]]:
        pairs = zip(self.banks_, _arrays(layers), strict=True)
        distances = [bank.distances(values, self._k(len(bank.projections))) for bank, values in pairs]
        return np.asarray(np.sum(distances, axis=0))

    def _state(self) -> dict[str, Tensor]:
        state = super()._state()
        for index, bank in enumerate(self.banks_):
            for name in _LayerBank.__dataclass_fields__:
                state[f"bank.{index}.{name}"] = torch.from_numpy(np.ascontiguousarray(getattr(bank, name)))
        return state

    def _restore(self, state: dict[str, Tensor]) -> None:
        super()._restore(state)
        self.banks_ = [
            _LayerBank(*(state[f"bank.{index}.{name}"].numpy() for name in _LayerBank.__dataclass_fields__))
            for index in range(self.num_layers)
        ]


def _arrays(layers: Layers) -> list[NDArray[np.float64]]:
    return [layer.double().numpy(force=True) for layer in (*layers.hidden, layers.logits)]
