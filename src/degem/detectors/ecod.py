"""Tail probabilities of each feature column, multiplied: ECOD."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from degem.detectors.base import ScoreResult
from degem.detectors.feature_rows import FeatureDetector
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.model_file import tensor_of
from degem.ops.features import Features, dense
from degem.training import History, OnProgress

AT_ONCE = 1 << 13  # rows made dense at a time: many, as each block walks over all columns


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
        return self._scored_by_block(graph, partial(_largest_tails, self.sorted_columns_), AT_ONCE)

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
