"""Detectors that know no graph: a node's own features, and the mean of its neighbours' beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from degem.detectors.base import Detector, ScoreResult
from degem.detectors.split import TrainingSet
from degem.errors import GraphError
from degem.graph import Graph
from degem.model_file import tensor_of
from degem.ops.features import Features, dense, is_bag_of_words
from degem.ops.neighbours import divisors
from degem.parameters import Count
from degem.propagation import choose_propagator
from degem.training import History, OnProgress

BLOCK = 1024  # rows made dense at a time
MEANS_AT_ONCE = "the means of neighbours' features are made in one product"
TAILS_AT_ONCE = 1 << 13  # as many, where each block walks over all columns


class FeatureDetector(Detector):
    """The base of detectors of rows of features."""

    neighbour_means: bool

    needs_labels: ClassVar[bool] = False

    def _rows(self, graph: Graph) -> Features:
        return feature_rows(graph, self.neighbour_means)

    def _training_rows(self, training: TrainingSet) -> Features:
        return self._rows(training.graph)[training.nodes]

    @property
    def _width(self) -> int:
        """The length of a row."""
        return int(self.num_features_ * (1 + self.neighbour_means))

    @property
    def one_machine(self) -> str | None:
        """Why it cannot use a cluster."""
        return MEANS_AT_ONCE if self.neighbour_means else None

    def _scored_by_block(
        self, graph: Graph, score: Callable[[Features], NDArray[Any]], block_rows: int = BLOCK
    ) -> ScoreResult:
        blocks = choose_propagator(0).map_rows(partial(_alone, score), self._rows(graph), block_rows=block_rows)
        return ScoreResult(np.concatenate([scores for (scores,) in blocks]))


def _alone(score: Callable[[Features], NDArray[Any]], rows: Features) -> tuple[NDArray[Any]]:
    return (score(rows),)


def feature_rows(graph: Graph, neighbour_means: bool) -> Features:
    """The features, with one-hop means appended where asked for; a node without neighbours has a mean of zeros.

    Example:
        >>> feature_rows(Graph.from_arrays(features=np.eye(2), edges=[(0, 1)]), neighbour_means=True)
        array([[1., 0., 0., 1.],
               [0., 1., 1., 0.]], dtype=float32)
    """
    if not neighbour_means:
        return graph.features
    sums = graph.adjacency @ graph.features.astype(np.float64)  # as good as exact, whatever the order of neighbours
    means = sp.diags_array(1 / divisors(graph.adjacency).astype(np.float64)) @ sums
    if isinstance(graph.features, sp.csr_array):
        return sp.csr_array(sp.hstack([graph.features, sp.csr_array(means).astype(np.float32)]))
    return np.hstack([graph.features, np.asarray(means, dtype=np.float32)])


@dataclass(kw_only=True, eq=False)
class ECOD(FeatureDetector):
    r"""How far out in the tails of the training nodes' columns a node is (Li et al. 2022).

    With the share :math:`F_j` of training nodes at most as large and :math:`G_j` at least as large in column j (the
    node itself counted), the largest of :math:`-\sum_j \log F_j`, :math:`-\sum_j \log G_j`, and the sum over the left
    tail where a column is skewed to the left and over the right one elsewhere.

    Arguments:
        neighbour_means: Append the mean features of a node's neighbours to its own.

    Example:
        >>> graph = Graph.from_arrays(features=np.arange(5.0)[:, None], edges=[(0, 1)])
        >>> ECOD().fit(graph, calibration_mask=np.arange(5) == 2).decision_function(graph).round(1)
        array([0.9, 0.5, 0.5, 0.5, 0.9])
    """

    neighbour_means: bool = False

    name = "ecod"

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        self.sorted_columns_: NDArray[np.float32] = np.sort(dense(self._training_rows(training)), axis=0).T.copy()
        return {}

    def _score(self, graph: Graph) -> ScoreResult:
        return self._scored_by_block(graph, partial(_largest_tails, self.sorted_columns_), TAILS_AT_ONCE)

    def _state(self) -> dict[str, torch.Tensor]:
        return {"sorted_columns": torch.from_numpy(self.sorted_columns_)}

    def _restore(self, state: dict[str, torch.Tensor]) -> None:
        self.sorted_columns_ = tensor_of(state, "sorted_columns", torch.float32, self._width, None).numpy()


@dataclass(kw_only=True, eq=False)
class ECODOneHop(ECOD):
    """:class:`ECOD` on a node's own features and the mean of its neighbours'."""

    neighbour_means: bool = True

    name = "ecod-1hop"


def _largest_tails(sorted_columns: NDArray[np.float32], rows: Features) -> NDArray[np.float64]:
    sums = np.zeros((3, rows.shape[0]))
    for values, known in zip(dense(rows).T, sorted_columns, strict=True):
        sums += tails(values, known)
    largest: NDArray[np.float64] = sums.max(axis=0)
    return largest


def tails(values: NDArray[np.float32], known: NDArray[np.float32]) -> NDArray[np.float64]:
    """Minus the log of the left, the right and the skew-corrected tail of each value, of shape (3, n).

    Arguments:
        values: Values of one column.
        known: The training nodes' values of it, sorted.

    Example:
        >>> np.exp(-tails(np.array([0.0, 9.0]), np.array([0.0, 1.0, 5.0])))[:2]
        array([[0.5 , 1.  ],
               [1.  , 0.25]])
    """
    count = len(known)
    left = -np.log((1 + np.searchsorted(known, values, side="right")) / (count + 1))
    right = -np.log((1 + count - np.searchsorted(known, values, side="left")) / (count + 1))
    skew = float(((known - known.mean(dtype=np.float64)) ** 3).sum())
    corrected = left if skew < 0 else right
    return np.stack([left, right, corrected])


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
