"""Detectors that know no graph: a node's own features, and the mean of its neighbours' beside them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.detectors.base import Detector, ScoreResult
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.ops.features import Features
from degem.ops.neighbours import divisors
from degem.propagation import choose_propagator

BLOCK = 1024  # rows made dense at a time
MEANS_AT_ONCE = "the means of neighbours' features are made in one product"


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
