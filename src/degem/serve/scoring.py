"""Scores of a graph that changes: row by row where the detector can, by scoring the whole graph where it cannot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from degem.calibration import Calibration, conformal_p_values
from degem.calibration.judged import ScoreResult
from degem.calibration.known import ENOUGH
from degem.detectors.base import Detector
from degem.graph import Graph
from degem.ops.features import Features
from degem.serve.live_graph import Changes, LiveGraph
from degem.serve.provisional import NewRows, ProvisionalRows
from degem.serve.rows import NONE, Places, ScoreRows


@dataclass(frozen=True)
class Scored:
    """Scores of every row of a live graph, of those too that are gone; nothing here is ever changed.

    Arguments:
        scores: One score a row.
        terms: What each term adds to it.
        classes: The place of the likeliest class, or None.
        chances: Its probability, or None.
        calibration: The scores of the calibration nodes, of the same pass where the graph holds them.
        combination: How terms make a score now, of detectors that score row by row.
        rows: What provisional scores are made of, of such detectors.
    """

    scores: NDArray[Any]
    terms: Mapping[str, NDArray[Any]]
    classes: NDArray[Any] | None
    chances: NDArray[Any] | None
    calibration: NDArray[np.float64]
    combination: Any = None
    rows: ProvisionalRows | None = None

    @classmethod
    def of(
        cls,
        result: ScoreResult,
        calibration: NDArray[np.float64],
        combination: Any = None,
        rows: ProvisionalRows | None = None,
    ) -> Scored:
        """What is kept of a result."""
        likely = None if result.probabilities is None else result.probabilities.argmax(axis=1)
        chances = None if result.probabilities is None else result.probabilities.max(axis=1)
        return cls(result.scores, result.terms, likely, chances, calibration, combination, rows)

    def of_rows(self, rows: Places) -> Scored:
        """Some of the rows."""
        classes = None if self.classes is None else self.classes[rows]
        chances = None if self.chances is None else self.chances[rows]
        terms = {name: term[rows] for name, term in self.terms.items()}
        return Scored(self.scores[rows], terms, classes, chances, self.calibration)

    def p_values(self) -> NDArray[np.float64]:
        """How often a calibration node scores at least as high."""
        return conformal_p_values(self.calibration, self.scores)


class _Followed:
    """Nodes that a fit knows, found again while the graph changes.

    Arguments:
        ids: The hashes of their ids.
        found: Whether the graph that it all began with holds them.
    """

    def __init__(self, ids: NDArray[np.int64], found: bool) -> None:
        self._ids, self._found = ids, found
        self._known = np.empty(0, dtype=np.bool_)

    def rows(self, live: LiveGraph) -> Places:
        """Their rows; none where less than half of them are left, as then the graph is another one."""
        new = live.names[len(self._known) :]
        self._known = np.concatenate([self._known, np.isin(new, self._ids)])
        rows = np.flatnonzero(self._known & live.alive)
        return rows if self._found and len(rows) >= ENOUGH * len(self._ids) else NONE


class Scoring(ABC):
    """Scores of one live graph, brought up to date after each change.

    Arguments:
        detector: The detector.
        live: The graph.
        found: Whether the graph that it all began with holds the calibration nodes.
    """

    refresh: str

    def __init__(self, detector: Detector, live: LiveGraph, found: bool) -> None:
        self.detector, self.live = detector, live
        self._calibration: Calibration = detector.calibration_
        self._calibration_nodes = _Followed(self._calibration.nodes.ids, found)
        self.num_rows = 0

    @abstractmethod
    def update(self, changes: Changes | None) -> Scored:
        """Scores after some changes; None for the first time."""

    @abstractmethod
    def score(self, graph: Graph, degrees: NDArray[np.float32] | None, now: Scored) -> Scored:
        """Scores of a small graph by itself, on the scale and beside the calibration nodes of now.

        Arguments:
            graph: The graph.
            degrees: The true degrees of its nodes, where not all of their edges are in it.
            now: The scores of the live graph.
        """

    def provisional(self, new: NewRows, now: Scored) -> Scored | None:
        """New nodes' scores from the rows that their neighbours had then, where the detector scores row by row."""
        return None

    def _calibrated(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        rows = self._calibration_nodes.rows(self.live)
        return np.asarray(scores[rows], dtype=np.float64) if len(rows) else self._calibration.scores


class FullScoring(Scoring):
    """Every change has the whole graph scored."""

    refresh = "full"

    def update(self, changes: Changes | None) -> Scored:
        """Scores after some changes."""
        graph, there = self.live.graph(), self.live.alive
        self.num_rows = graph.num_nodes
        result = self.detector.score(graph)

        def spread(values: NDArray[Any]) -> NDArray[Any]:
            whole = np.zeros((len(there), *values.shape[1:]), dtype=values.dtype)
            whole[there] = values
            return whole

        chances = None if result.probabilities is None else spread(result.probabilities)
        scores = spread(result.scores)
        terms = {name: spread(term) for name, term in result.terms.items()}
        return Scored.of(ScoreResult(scores, chances, terms), self._calibrated(scores))

    def score(self, graph: Graph, degrees: NDArray[np.float32] | None, now: Scored) -> Scored:
        """Scores of a small graph by itself; these detectors know of no degrees but those in it."""
        return Scored.of(self.detector.score(graph), now.calibration)


class RowScoring(Scoring):
    """Only rows that a change reaches are computed anew.

    Arguments:
        detector: A detector that scores row by row.
        live: The graph.
        found: See :class:`Scoring`.
        held_out_found: Whether that graph holds the nodes that the detector takes its scale from.
        tolerance: What may be left out, see :class:`~degem.propagation.changing.ChangingHops`.
    """

    refresh = "rows"

    def __init__(self, detector: Any, live: LiveGraph, found: bool, *, held_out_found: bool, tolerance: float) -> None:
        super().__init__(detector, live, found)
        self._scorer = detector.row_scorer()
        self._rows = ScoreRows(self._scorer, tolerance)
        self._held_out = _Followed(self._scorer.held_out.ids, held_out_found)

    def update(self, changes: Changes | None) -> Scored:
        """Scores after some changes."""
        everything = np.arange(len(self.live.ids))
        begun, touched = (everything, everything) if changes is None else (changes.begun, changes.touched)
        self._rows.update(self.live.adjacency, begun, touched, self.live.features)
        self.num_rows = self._rows.num_scored
        energies, isolated = self._rows.smoothed_energies(), self._rows.degrees == 0
        rows = self._held_out.rows(self.live)
        combination = self._scorer.combination(energies[rows], isolated[rows])
        result = self._scorer.result(energies, isolated, self._rows.chances(), combination)
        return Scored.of(result, self._calibrated(result.scores), combination, ProvisionalRows(self._rows))

    def score(self, graph: Graph, degrees: NDArray[np.float32] | None, now: Scored) -> Scored:
        """Scores of a small graph by itself, whose nodes may have more edges than it holds."""
        rows, everything = ScoreRows(self._scorer), np.arange(graph.num_nodes)

        def features(some: Places) -> Features:
            return graph.features[some]

        rows.update(graph.adjacency, everything, everything, features, degrees)
        isolated = rows.degrees == 0
        result = self._scorer.result(rows.smoothed_energies(), isolated, rows.chances(), now.combination)
        return Scored.of(result, now.calibration)

    def provisional(self, new: NewRows, now: Scored) -> Scored | None:
        """New nodes' scores from the rows that their neighbours had then."""
        assert now.rows is not None
        energies, chances, isolated = now.rows.energies(new)
        return Scored.of(self._scorer.result(energies, isolated, chances, now.combination), now.calibration)


def scoring_of(detector: Detector, live: LiveGraph, *, found: bool, tolerance: float) -> Scoring:
    """The cheapest way to score a live graph with a detector.

    Arguments:
        detector: The detector.
        live: The graph.
        found: Whether the graph that it all began with holds the calibration nodes.
        tolerance: See :class:`RowScoring`.
    """
    make_scorer = getattr(detector, "row_scorer", None)
    if make_scorer is None:
        return FullScoring(detector, live, found)
    held_out_found = make_scorer().held_out.rows_in(live.graph()) is not None
    return RowScoring(detector, live, found, held_out_found=held_out_found, tolerance=tolerance)
