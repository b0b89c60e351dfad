"""What explanations share: the scored graph, the ordinary nodes that each node is compared with, and what is usual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import normalize

from degem.calibration.conformal import conformal_p_values
from degem.calibration.judged import Judged
from degem.detectors.base import Detector
from degem.explain.columns import USUAL, Column, columns_of
from degem.graph import Graph
from degem.ops.features import Features, dense

FEWEST, MOST = 64, 2_000
FARTHEST, LEAST_SPREAD = 3.0, 1e-6


@dataclass(frozen=True)
class Setting:
    """Nodes to explain, and what they are compared with."""

    judged: Judged  # all nodes of the graph, judged
    class_names: list[str]  # the names of the classes, in the order of probabilities
    explained: NDArray[np.int64]
    ordinary: NDArray[np.int64]  # ordinary nodes of the graph
    features: NDArray[np.floating[Any]]  # their features, dense, of shape (m, d₀)
    columns: list[Column]
    nodes: NDArray[np.int64]  # for each explained node the ordinary ones most like it
    order: NDArray[np.int64]  # for each explained node the columns, those first in which it differs most from these

    def typical_score(self, place: int) -> float:
        """The mean score of what an explained node is compared with."""
        return float(np.mean(self.judged.scored.scores[self.nodes[place]], dtype=np.float64))

    def rise(self, place: int) -> float:
        """How far an explained node scores above them."""
        return float(self.judged.scored.scores[self.explained[place]]) - self.typical_score(place)

    def column_detail(self, column: Column, values: NDArray[np.floating[Any]]) -> str:
        """What a node has in a column."""
        rows = self.features[:, column.positions]
        return f"{column.told(values[column.positions])}, usual {column.usual(rows)}"

    def size_detail(self, values: NDArray[np.floating[Any]]) -> str:
        """How many features of a node are not zero."""
        low, high = np.quantile((self.features != 0).sum(axis=1), USUAL)
        return f"{np.count_nonzero(values):,} not zero, usual {low:.4g} – {high:.4g}"

    def degree_detail(self, node: int) -> str:
        """How many neighbours a node has."""
        degrees = self.judged.whole.degrees
        low, high = np.quantile(degrees[self.ordinary], USUAL)
        return f"{degrees[node]:,}, usual {low:.4g} – {high:.4g}"

    def neighbour_detail(self, neighbour: int) -> str:
        """Which class a neighbour is predicted to have, and how usual it is."""
        scored = self.judged.scored.of(np.array([neighbour]))
        p = f"p {conformal_p_values(self.judged.calibration_scores, scored.scores)[0]:.2g}"
        return p if scored.probabilities is None else f"class {self.class_names[scored.probabilities.argmax()]}, {p}"


def setting_of(detector: Detector, judged: Judged, rows: NDArray[np.int64], num_typical: int) -> Setting:
    """The ordinary nodes to compare each of some nodes with.

    Ordinary is what scores nearest to the median of the calibration nodes. Of those the ones are taken whose own
    features are most alike: a node in a strange place differs from them in its place, a strange node in itself.
    """
    graph = judged.graph
    ordinary = _ordinary(judged, graph)
    own, known = graph.features[rows], graph.features[ordinary]
    apart = _apart(own, known)
    apart[rows[:, None] == ordinary] = np.inf
    nearest = np.argsort(apart, axis=1, kind="stable")[:, : max(1, min(num_typical, len(ordinary) - 1))]
    values, columns = dense(known), columns_of(detector, graph)
    usual = np.mean([values[places] for places in nearest.T], axis=0)
    unlike = np.abs(dense(own) - usual) / (values.std(axis=0) + LEAST_SPREAD)
    by_column = np.stack([unlike[:, column.positions].max(axis=1) for column in columns], axis=1)
    order = np.argsort(-by_column, axis=1, kind="stable")
    return Setting(judged, class_names(detector), rows, ordinary, values, columns, ordinary[nearest], order)


def _ordinary(judged: Judged, graph: Graph) -> NDArray[np.int64]:
    scores = np.asarray(judged.scored.scores[: graph.num_nodes], dtype=np.float64)
    distance = np.abs(scores - np.median(judged.calibration_scores))
    if (graph.degrees > 0).sum() > 1:
        distance[graph.degrees == 0] = np.inf
    count = min(max(FEWEST, graph.num_nodes // 4), MOST, max(int(np.isfinite(distance).sum()), 1))
    return np.sort(np.argsort(distance, kind="stable")[:count])


def _apart(features: Features, others: Features) -> NDArray[np.float64]:
    """Distances: by angle of sparse features, else on the scale of the others, in which no column counts beyond 3 σ."""
    if isinstance(features, sp.csr_array) and isinstance(others, sp.csr_array):
        return np.asarray(euclidean_distances(normalize(_marked(features)), normalize(_marked(others))))
    known = dense(others)
    center, spread = known.mean(axis=0), known.std(axis=0) + LEAST_SPREAD
    scaled = [np.clip((dense(part) - center) / spread, -FARTHEST, FARTHEST) for part in (features, others)]
    return np.asarray(euclidean_distances(*scaled))


def class_names(detector: Detector) -> list[str]:
    """The names of a detector's classes, in the order of its probabilities."""
    if detector.class_names_ is None:
        return [str(label) for label in detector.classes_]
    return [detector.class_names_[label] for label in detector.classes_]


def _marked(rows: sp.csr_array) -> sp.csr_array:
    """Rows with one more column, which tells those without any feature from all others."""
    return sp.csr_array(sp.hstack([rows, (rows.sum(axis=1) == 0)[:, None]]))
