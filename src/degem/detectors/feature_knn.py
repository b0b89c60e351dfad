"""The distance to the k-th nearest training node in feature space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from degem.detectors.base import ScoreResult
from degem.detectors.feature_rows import FeatureDetector
from degem.detectors.split import TrainingSet
from degem.errors import GraphError
from degem.graph import Graph
from degem.model_file import tensor_of
from degem.ops.features import Features, dense, is_bag_of_words
from degem.parameters import Count
from degem.training import History, OnProgress


@dataclass(kw_only=True, eq=False)
class FeatureKNN(FeatureDetector):
    """The Euclidean distance to the k-th nearest training node (Ramaswamy et al. 2000), on features alone.

    Bags of words are compared as rows of unit length, other features as standardised columns.

    Arguments:
        num_neighbors: The number k; all training nodes where there are fewer.
        neighbour_means: Append the mean features of a node's neighbours to its own.
    """

    num_neighbors: Count = 10
    neighbour_means: bool = False

    name = "feature-knn"

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        rows = self._training_rows(training)
        self.unit_rows_ = is_bag_of_words(training.graph.features[training.nodes])
        self.mean_ = np.zeros(self._width, dtype=np.float32)
        self.scale_ = np.ones(self._width, dtype=np.float32)
        if not self.unit_rows_:
            known = dense(rows)
            self.mean_, deviation = known.mean(axis=0), known.std(axis=0)
            self.scale_ = np.where(deviation > 0, deviation, 1).astype(np.float32)
        self.bank_: NDArray[np.float32] = self._encoded(rows)
        return {}

    def _score(self, graph: Graph) -> ScoreResult:
        from sklearn.neighbors import NearestNeighbors  # slow to load

        k = min(self.num_neighbors, len(self.bank_))
        nearest = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(self.bank_)
        return self._scored_by_block(graph, lambda rows: nearest.kneighbors(self._encoded(rows))[0][:, -1])

    def _encoded(self, rows: Features) -> NDArray[np.float32]:
        if not self.unit_rows_:
            with np.errstate(over="ignore"):
                encoded = (dense(rows) - self.mean_) / self.scale_
            if not np.isfinite(encoded).all():
                raise GraphError("features lie too far from those of training: their distances are beyond float32")
            return encoded
        parts = np.split(dense(rows), 2, axis=1) if self.neighbour_means else [dense(rows)]
        return np.hstack([part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12) for part in parts])

    def _state(self) -> dict[str, torch.Tensor]:
        arrays = {"mean": self.mean_, "scale": self.scale_, "bank": self.bank_}
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return {"unit_rows": torch.tensor(self.unit_rows_), **tensors}

    def _restore(self, state: dict[str, torch.Tensor]) -> None:
        width = self._width
        self.unit_rows_ = bool(tensor_of(state, "unit_rows", torch.bool))
        self.mean_, self.scale_ = (tensor_of(state, name, torch.float32, width).numpy() for name in ("mean", "scale"))
        self.bank_ = tensor_of(state, "bank", torch.float32, None, width).numpy()


@dataclass(kw_only=True, eq=False)
class FeatureKNNOneHop(FeatureKNN):
    """:class:`FeatureKNN` on a node's own features and the mean of its neighbours'."""

    neighbour_means: bool = True

    name = "feature-knn-1hop"
