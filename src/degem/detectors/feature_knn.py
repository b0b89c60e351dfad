"""The distance to the k-th nearest training node in feature space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from degem.detectors.base import Detector, ScoreResult
from degem.detectors.feature_rows import BLOCK, MEANS_AT_ONCE, feature_rows
from degem.detectors.split import TrainingSet
from degem.errors import GraphError
from degem.graph import Graph
from degem.model_file import tensor_of
from degem.ops.features import Features, dense, is_bag_of_words
from degem.parameters import Count
from degem.propagation import choose_propagator
from degem.training import History, OnProgress


@dataclass(kw_only=True, eq=False)
class FeatureKNN(Detector):
    """The Euclidean distance to the k-th nearest training node (Ramaswamy et al. 2000), on features alone.

    Bags of words are compared as rows of unit length, other features as standardised columns.

    Arguments:
        num_neighbors: The number k; all training nodes where there are fewer.
        neighbour_means: Append the mean features of a node's neighbours to its own.

    Example:
        >>> graph = Graph.from_arrays(features=np.eye(20), edges=[(0, 1)])
        >>> FeatureKNN().fit(graph).decision_function(graph).shape
        (20,)
    """

    num_neighbors: Count = 10
    neighbour_means: bool = False

    name: ClassVar[str] = "feature-knn"
    paper: ClassVar[str] = "Ramaswamy et al. 2000"
    needs_labels: ClassVar[bool] = False

    @property
    def one_machine(self) -> str | None:
        """Why it cannot use a cluster."""
        return MEANS_AT_ONCE if self.neighbour_means else None

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        rows = feature_rows(training.graph, self.neighbour_means)[training.nodes]
        num_columns = rows.shape[1]
        self.unit_rows_ = is_bag_of_words(training.graph.features[training.nodes])
        self.mean_ = np.zeros(num_columns, dtype=np.float32)
        self.scale_ = np.ones(num_columns, dtype=np.float32)
        if not self.unit_rows_:
            known = dense(rows)
            self.mean_, deviation = known.mean(axis=0), known.std(axis=0)
            self.scale_ = np.where(deviation > 0, deviation, 1).astype(np.float32)
        self.bank_: NDArray[np.float32] = self._encode()(rows)
        return {}

    def _score(self, graph: Graph) -> ScoreResult:
        from sklearn.neighbors import NearestNeighbors  # slow to load

        k = min(self.num_neighbors, len(self.bank_))
        nearest = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(self.bank_)
        rows = feature_rows(graph, self.neighbour_means)
        distances = partial(_distances, nearest, self._encode())
        blocks = choose_propagator(0).map_rows(distances, rows, block_rows=BLOCK)
        return ScoreResult(np.concatenate([farthest for (farthest,) in blocks]))

    def _encode(self) -> Callable[[Features], NDArray[np.float32]]:
        if self.unit_rows_:
            return partial(_unit_rows, 1 + self.neighbour_means)
        return partial(_standardised, self.mean_, self.scale_)

    def _state(self) -> dict[str, torch.Tensor]:
        return {
            "unit_rows": torch.tensor(self.unit_rows_),
            "mean": torch.from_numpy(self.mean_),
            "scale": torch.from_numpy(self.scale_),
            "bank": torch.from_numpy(self.bank_),
        }

    def _restore(self, state: dict[str, torch.Tensor]) -> None:
        width = self.num_features_ * (1 + self.neighbour_means)
        self.unit_rows_ = bool(tensor_of(state, "unit_rows", torch.bool))
        self.mean_, self.scale_ = (tensor_of(state, name, torch.float32, width).numpy() for name in ("mean", "scale"))
        self.bank_ = tensor_of(state, "bank", torch.float32, None, width).numpy()


def _standardised(mean: NDArray[np.float32], scale: NDArray[np.float32], rows: Features) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        encoded: NDArray[np.float32] = (dense(rows) - mean) / scale
    if not np.isfinite(encoded).all():
        raise GraphError("features lie too far from those of training: their distances are beyond float32")
    return encoded


def _unit_rows(num_parts: int, rows: Features) -> NDArray[np.float32]:
    parts = np.split(dense(rows), num_parts, axis=1)
    return np.hstack([part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12) for part in parts])


def _distances(
    nearest: Any, encode: Callable[[Features], NDArray[np.float32]], rows: Features
) -> tuple[NDArray[np.float32]]:
    return (nearest.kneighbors(encode(rows))[0][:, -1],)


@dataclass(kw_only=True, eq=False)
class FeatureKNNOneHop(FeatureKNN):
    """:class:`FeatureKNN` on a node's own features and the mean of its neighbours'."""

    neighbour_means: bool = True

    name: ClassVar[str] = "feature-knn-1hop"
