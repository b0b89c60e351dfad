"""Distances in the penultimate layer of a graph classifier: to the nearest training nodes, to the nearest class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import pinvh
from torch import Tensor

from degem.detectors.backbone import BackboneDetector, Layers
from degem.detectors.odin import perturbed_layers
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.model_file import tensor_of
from degem.parameters import Count, NonNegative


@dataclass(kw_only=True, eq=False)
class KNN(BackboneDetector):
    r"""The distance of unit-length penultimate latents to the :math:`k`-th nearest training node (Sun et al. 2022).

    Arguments:
        num_neighbors: The number :math:`k`; all training nodes where there are fewer.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.
    """

    num_neighbors: Count = 10

    reads_logits = False
    name = "knn"

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


@dataclass(kw_only=True, eq=False)
class Mahalanobis(BackboneDetector):
    r"""The Mahalanobis distance to the nearest class mean in the penultimate layer (Lee et al. 2018).

    .. math:: s = \min_c (h - \mu_c)^\top \Sigma^{-1} (h - \mu_c)

    :math:`\Sigma` is one covariance for all classes. It is inverted where it is larger than the rounding of the
    latents: below, a plain inverse would make distances out of noise. The benchmarks that DeGEM and GNNSafe were
    published with return this distance where higher must mean ID, so their Mahalanobis figures are turned over. Here
    higher is OOD.

    Arguments:
        perturbation: A step of the features towards the nearest class before scoring, in units of the features' root
            mean square; 0 for none.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.
    """

    perturbation: NonNegative = 0.0

    reads_logits = False
    name = "mahalanobis"

    def _read(self, training: TrainingSet) -> None:
        # Slow to load, and a detector that is only described does without.
        from sklearn.covariance import EmpiricalCovariance

        latents, labels, means = self._latents_by_class(training)
        self.means_ = torch.from_numpy(means)
        covariance = EmpiricalCovariance(store_precision=False).fit(latents - means[labels]).covariance_
        self.precision_ = torch.from_numpy(pinvh(covariance, rtol=len(covariance) * np.finfo(np.float32).eps))

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        if self.perturbation > 0:
            layers = perturbed_layers(
                self.network_,
                self._tensors(graph),
                lambda moved: self._distances(moved.hidden[-1]).sum(),
                magnitude=self.perturbation,
            )
        return self._distances(layers.hidden[-1])

    def _distances(self, latents: Tensor) -> Tensor:
        precision = self.precision_.to(latents.device)
        to_classes = []
        for mean in self.means_.to(latents.device):
            centred = latents.double() - mean
            to_classes.append((centred @ precision * centred).sum(dim=1))
        return torch.stack(to_classes).amin(dim=0)

    def _state(self) -> dict[str, Tensor]:
        return {**super()._state(), "means": self.means_, "precision": self.precision_}

    def _restore(self, state: dict[str, Tensor]) -> None:
        super()._restore(state)
        self.means_ = tensor_of(state, "means", torch.float64, None, self.latent_dim_)
        self.precision_ = tensor_of(state, "precision", torch.float64, self.latent_dim_, self.latent_dim_)
