"""The distance to the nearest class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.linalg import pinvh
from torch import Tensor

from degem.detectors.backbone import BackboneDetector, Layers
from degem.detectors.odin import perturbed_layers
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.model_file import tensor_of
from degem.parameters import NonNegative


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

    Example:
        >>> from degem import Graph
        >>> graph = Graph.from_arrays(features=np.eye(20), edges=[(i, i + 2) for i in range(18)], labels=[0, 1] * 10)
        >>> Mahalanobis(num_epochs=5).fit(graph).decision_function(graph).shape
        (20,)
    """

    perturbation: NonNegative = 0.0

    reads_logits: ClassVar[bool] = False
    name: ClassVar[str] = "mahalanobis"
    paper: ClassVar[str] = "Lee et al. 2018"

    def _read(self, training: TrainingSet) -> None:
        # Slow to load, and a detector that is only described does without.
        from sklearn.covariance import EmpiricalCovariance

        nodes = training.labelled_nodes
        latents = self._layers(training.graph).latents[nodes].astype(np.float64)
        labels = training.graph.labels[nodes]
        means = np.stack([latents[labels == label].mean(axis=0) for label in range(training.num_classes)])
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
