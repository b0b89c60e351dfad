"""Scored nodes beside calibration nodes of the same pass: p-values, flags, a table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.calibration.conformal import (
    conformal_p_values,
    degree_weights,
    nodes_needed,
    smallest_stratum,
    stratified_p_values,
)
from degem.calibration.fdr import benjamini_hochberg
from degem.calibration.nodes import Calibration
from degem.calibration.trust import doubts, error_chances
from degem.errors import CalibrationWarning, DegemError, GraphError, NotFittedError, ParameterError, quoted
from degem.graph import Graph, as_graph

if TYPE_CHECKING:
    import pandas as pd

Exchangeable = Literal["nodes", "edges"]
WITH_LABELS = "fit on a graph with labels, or calibrate on labelled nodes"


@dataclass(frozen=True)
class ScoreResult:
    """What one pass of a detector over a graph gives.

    Arguments:
        scores: One number a node, higher = more out-of-distribution.
        probabilities: Class probabilities of shape (n, C), or None for a detector fitted without labels.
        terms: What each term of the score adds to it, by name, of methods that have terms.
    """

    scores: NDArray[np.floating[Any]]
    probabilities: NDArray[np.floating[Any]] | None = None
    terms: Mapping[str, NDArray[np.floating[Any]]] = field(default_factory=dict)

    def of(self, rows: NDArray[np.int64] | slice) -> ScoreResult:
        """The result of some nodes."""
        chances = None if self.probabilities is None else self.probabilities[rows]
        return ScoreResult(self.scores[rows], chances, {name: term[rows] for name, term in self.terms.items()})


class Scorer(Protocol):
    """What can be judged: something fitted that scores graphs and has calibration nodes."""

    def score(self, graph: Any) -> ScoreResult:
        """The scores of every node."""


@dataclass(frozen=True)
class Judged:
    """Nodes of a scored graph, and the calibration scores that they are compared with.

    Arguments:
        graph: The graph.
        nodes: Which of its nodes are judged.
        whole: The graph that was scored: the graph itself, or with kept calibration nodes joined behind.
        scored: The result of all its nodes.
        calibration: The calibration nodes.
        places: Their rows in ``whole``, −1 where it lacks one; None if it does not hold them.
    """

    graph: Graph
    nodes: NDArray[np.int64]
    whole: Graph
    scored: ScoreResult
    calibration: Calibration
    places: NDArray[np.int64] | None

    @cached_property
    def result(self) -> ScoreResult:
        """The result of the judged nodes."""
        return self.scored.of(self.nodes)

    @cached_property
    def calibration_scores(self) -> NDArray[np.float64]:
        """Scores of the calibration nodes, of the same pass where the graph holds them."""
        if self.places is None:
            return self.calibration.scores
        return np.asarray(self.scored.scores, dtype=np.float64)[self.places[self.places >= 0]]

    @cached_property
    def calibration_degrees(self) -> NDArray[np.int64]:
        """Their degrees."""
        if self.places is None:
            return self.calibration.degrees
        return self.whole.degrees[self.places[self.places >= 0]]

    @property
    def degrees(self) -> NDArray[np.int64]:
        """The degrees of the judged nodes."""
        return self.graph.degrees[self.nodes]

    def p_values(self, *, by_degree: bool = False, exchangeable: Exchangeable = "nodes") -> NDArray[np.float64]:
        """How often a calibration node scores at least as high: see :meth:`Decisions.p_values`."""
        if not isinstance(exchangeable, str) or exchangeable not in get_args(Exchangeable):
            choices = " or ".join(get_args(Exchangeable))
            raise ParameterError(f"exchangeable = {quoted(exchangeable)} is not allowed: choose {choices}")
        if not isinstance(by_degree, bool | np.bool_):
            raise ParameterError(f"by_degree = {quoted(by_degree)} is not allowed: choose True or False")
        reference, degrees, by_edges = self.calibration_scores, self.calibration_degrees, exchangeable == "edges"
        if by_degree:
            return stratified_p_values(reference, degrees, self.result.scores, self.degrees, by_edges=by_edges)
        if by_edges:
            weights, own = degree_weights(degrees), degree_weights(self.degrees)
            return conformal_p_values(reference, self.result.scores, calibration_weights=weights, weights=own)
        return conformal_p_values(reference, self.result.scores)

    def flags(
        self,
        *,
        alpha: float = 0.05,
        fdr: float | None = None,
        by_degree: bool = False,
        exchangeable: Exchangeable = "nodes",
    ) -> NDArray[np.int64]:
        """1 for nodes flagged as OOD, else 0: see :meth:`Decisions.predict`."""
        p = self.p_values(by_degree=by_degree, exchangeable=exchangeable)
        self._warn_of_too_few(alpha if fdr is None else fdr, by_degree, exchangeable)
        return np.asarray(p <= alpha if fdr is None else benjamini_hochberg(p, fdr), dtype=np.int64)

    def table(self, class_names: Sequence[str | int], **how: Any) -> pd.DataFrame:
        """One row a node: see :meth:`Decisions.score_table`; ``how`` as in :meth:`flags`."""
        import pandas as pd  # slow to load, and most of what detectors do needs no table

        choice = {name: value for name, value in how.items() if name in ("by_degree", "exchangeable")}
        result = self.result
        table = pd.DataFrame(
            {
                "node_id": self.graph.node_ids[self.nodes],
                "score": result.scores,
                "p_value": self.p_values(**choice),
                "is_ood": self.flags(**how).astype(np.bool_),
            }
        )
        if result.probabilities is None:
            return table.assign(predicted_class=None, class_probability=np.nan)
        table["predicted_class"] = np.asarray(class_names)[result.probabilities.argmax(axis=1)]
        table["class_probability"] = result.probabilities.max(axis=1).astype(np.float64)
        return table

    def error_chances(
        self, classes: Sequence[int], probabilities: NDArray[np.floating[Any]] | None = None
    ) -> NDArray[np.float64]:
        """The chance that the predicted class of each judged node is wrong: see :meth:`Decisions.trust`.

        Arguments:
            classes: The classes that the columns of the probabilities stand for.
            probabilities: Class probabilities of every node of the graph; default: the detector's own.
        """
        if probabilities is not None and (self.places is None or self.whole is not self.graph):
            raise GraphError("the graph lacks the calibration nodes, on which errors of your own classifier are learnt")
        found = self.scored.probabilities if probabilities is None else probabilities
        if found is None:
            raise DegemError(f"there are no classes to be wrong about: {WITH_LABELS}")
        against = doubts(found, self.whole.adjacency, conformal_p_values(self.calibration_scores, self.scored.scores))
        weights = self.calibration.error_weights
        if self.places is not None:
            weights = self.calibration.learn_errors(self.places, np.asarray(classes)[found.argmax(axis=1)], against)
        if weights is None:
            raise DegemError(f"no calibration node has a label that errors could be learnt on: {WITH_LABELS}")
        return error_chances(weights, against[self.nodes])

    def trust_table(
        self,
        classes: Sequence[int],
        class_names: Sequence[str | int],
        probabilities: NDArray[np.floating[Any]] | None = None,
    ) -> pd.DataFrame:
        """One row a node: see :meth:`Decisions.trust`; arguments as in :meth:`error_chances`."""
        import pandas as pd

        wrong = self.error_chances(classes, probabilities)
        chances = self.result.probabilities if probabilities is None else probabilities[self.nodes]
        assert chances is not None, "else there are no errors"
        return pd.DataFrame(
            {
                "node_id": self.graph.node_ids[self.nodes],
                "error_chance": wrong,
                "predicted_class": np.asarray(class_names)[chances.argmax(axis=1)],
                "class_probability": chances.max(axis=1).astype(np.float64),
                "p_value": self.p_values(),
            }
        )

    def _warn_of_too_few(self, level: float, by_degree: bool, exchangeable: Exchangeable) -> None:
        needed, count = nodes_needed(level), len(self.calibration_scores)
        if exchangeable == "edges":  # of so much weight as of one node of mean degree
            count = int(degree_weights(self.calibration_degrees).sum() * np.maximum(self.degrees, 1).mean())
        if by_degree:
            count = smallest_stratum(self.calibration_degrees)
        if count < needed:
            warnings.warn(
                CalibrationWarning(
                    f"{count} calibration nodes{' of similar degree' if by_degree else ''} cannot support a level "
                    f"of {level:g}: no node can be flagged {'there' if by_degree else 'at all'}; "
                    f"hold out at least {needed}"
                ),
                stacklevel=4,
            )


def judge(detector: Scorer, graph: Any, *, only: ArrayLike | None = None) -> Judged:
    """Score a graph and its calibration nodes in one pass, by any detector that has been calibrated.

    Arguments:
        detector: The detector.
        graph: The graph.
        only: The ids of the nodes to judge, in this order; default: all.

    Example:
        >>> from degem.data.demo import digits_graph
        >>> from degem.detectors.trivial import Degree
        >>> graph = digits_graph()
        >>> judge(Degree().fit(graph), graph, only=[3, 5]).p_values().shape
        (2,)
    """
    graph = as_graph(graph)
    calibration = calibration_of(detector)
    whole, places = calibration.joined(graph)
    nodes = np.arange(graph.num_nodes) if only is None else rows_named(graph, only)
    return Judged(graph, nodes, whole, detector.score(whole), calibration, places)


def calibration_of(detector: Any) -> Calibration:
    """The calibration nodes of a detector, or an error that says how to get some."""
    calibration: Calibration | None = getattr(detector, "calibration_", None)
    if calibration is not None:
        return calibration
    if hasattr(detector, "classes_"):
        raise NotFittedError(
            f"this {type(detector).__name__} was fitted with calibrate=False: call calibrate(graph, nodes) first"
        )
    raise NotFittedError(f"this {type(detector).__name__} is not fitted yet: call fit(graph) or load(path) first")


def rows_named(graph: Graph, ids: ArrayLike) -> NDArray[np.int64]:
    """The rows of the nodes with these ids, in their order.

    Example:
        >>> rows_named(Graph.from_arrays(features=[[1], [2]], edges=[(0, 1)], node_ids=["a", "b"]), ["b"])
        array([1])
    """
    place = {str(name): row for row, name in enumerate(graph.node_ids.tolist())}
    wanted = [str(name) for name in np.atleast_1d(np.asarray(ids)).tolist()]
    if len(place) < graph.num_nodes:
        raise GraphError("two nodes of the graph have the same id: give each its own to name nodes by it")
    missing = next((name for name in wanted if name not in place), None)
    if missing is not None:
        first = str(graph.node_ids[0])
        raise GraphError(f"the graph has no node {quoted(missing)}; its first node is {quoted(first)}")
    return np.array([place[name] for name in wanted], dtype=np.int64)
