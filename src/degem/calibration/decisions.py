"""The verbs that calibration gives a detector: all of them from its ``score`` and its calibration nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from degem.calibration.conformal import conformal_p_values
from degem.calibration.judged import Exchangeable, ScoreResult, calibration_of, judge, rows_named
from degem.calibration.known import FitNodes, ids_are_places
from degem.calibration.nodes import Calibration
from degem.calibration.trust import doubts
from degem.errors import DegemError, GraphError
from degem.graph import Graph, as_graph

if TYPE_CHECKING:
    import pandas as pd


class Decisions:
    """Decisions from scores. It knows of a detector that it has ``score``, ``calibration_`` and ``classes_``."""

    calibration_: Calibration
    fit_nodes_: FitNodes
    classes_: tuple[int, ...]
    class_names_: tuple[str, ...] | None

    def score(self, graph: Any) -> ScoreResult:
        """The scores of every node: the detector's own."""
        raise NotImplementedError

    def decision_function(self, graph: Any) -> NDArray[np.float64]:
        """One score a node, of shape (n,): higher = more out-of-distribution."""
        return np.asarray(self.score(graph).scores, dtype=np.float64)

    def p_values(
        self,
        graph: Any,
        *,
        only: ArrayLike | None = None,
        by_degree: bool = False,
        exchangeable: Exchangeable = "nodes",
    ) -> NDArray[np.float64]:
        """Conformal p-values: how often a calibration node scores at least as high, in the same graph.

        Arguments:
            graph: The graph to score. Where it holds the calibration nodes, as a graph does that has grown from the
                training graph, they are scored in the same pass.
            only: The ids of the nodes to judge, new ones say; default: all.
            by_degree: Compare each node with calibration nodes of similar degree only.
            exchangeable: ``nodes`` where any node may have arrived as early as another; ``edges`` where the
                well-connected came first, so that calibration nodes are better connected than new ones: then nodes
                weigh 1 / degree. Elsewhere such weights break the rate.
        """
        return judge(self, graph, only=only).p_values(by_degree=by_degree, exchangeable=exchangeable)

    def predict(
        self,
        graph: Any,
        *,
        alpha: float = 0.05,
        fdr: float | None = None,
        only: ArrayLike | None = None,
        by_degree: bool = False,
        exchangeable: Exchangeable = "nodes",
    ) -> NDArray[np.int64]:
        """1 for nodes flagged as OOD, else 0.

        Arguments:
            graph: The graph to score.
            alpha: The false-alarm rate: the share of ID nodes that may be flagged.
            fdr: Instead of ``alpha``, the share of flagged nodes that may be false alarms (Benjamini–Hochberg), among
                the nodes that are judged.
            only: See :meth:`p_values`.
            by_degree: See :meth:`p_values`.
            exchangeable: See :meth:`p_values`.
        """
        judged = judge(self, graph, only=only)
        return judged.flags(alpha=alpha, fdr=fdr, by_degree=by_degree, exchangeable=exchangeable)

    def predict_class(self, graph: Any) -> NDArray[np.int64]:
        """The predicted class of each node, numbered as in the graph the detector was fitted on."""
        probabilities = self.score(graph).probabilities
        if probabilities is None:
            raise DegemError(f"this {type(self).__name__} was fitted without labels: it predicts no classes")
        return np.asarray(np.asarray(self.classes_)[probabilities.argmax(axis=1)], dtype=np.int64)

    def score_table(
        self,
        graph: Any,
        *,
        alpha: float = 0.05,
        fdr: float | None = None,
        only: ArrayLike | None = None,
        by_degree: bool = False,
        exchangeable: Exchangeable = "nodes",
    ) -> pd.DataFrame:
        """Everything a score file holds, one row a node, from one pass over the graph.

        The columns are ``node_id``, ``score`` (higher = more OOD), ``p_value``, ``is_ood``, ``predicted_class`` (its
        name where it has one) and ``class_probability``; the last two are missing values for a detector fitted
        without labels. Arguments as in :meth:`predict`.
        """
        calibration_of(self)  # or an error that says what to do first
        how = {"by_degree": by_degree, "exchangeable": exchangeable}
        return judge(self, graph, only=only).table(self._names_of(self.classes_), alpha=alpha, fdr=fdr, **how)

    def trust(self, graph: Any, *, logits: ArrayLike | None = None, only: ArrayLike | None = None) -> pd.DataFrame:
        """How likely the predicted class of each node is wrong, be the node out-of-distribution or not.

        The chance comes from a small model, :func:`~degem.calibration.trust.fit_errors`, of errors on calibration nodes
        whose class is known: how unsure the classifier is, whether neighbours are thought to be of the same class, and
        the p-value. As p-values do, it holds for nodes like these; for shifted ones it is an order, not a rate.

        The columns are ``node_id``, ``error_chance``, ``predicted_class``, ``class_probability`` and ``p_value``.

        Arguments:
            graph: The graph.
            logits: Class logits of every node, in the order of the class indices, if it is the errors of a classifier
                of your own that are asked for; then the graph must hold the calibration nodes.
            only: The ids of the nodes to judge; default: all.
        """
        judged = judge(self, graph, only=only)
        if logits is None:
            return judged.trust_table(self.classes_, self._names_of(self.classes_))
        chances = softmax(np.asarray(logits, dtype=np.float64), axis=1)
        if len(chances) != judged.graph.num_nodes:
            raise GraphError(f"there are {len(chances)} rows of logits, but {judged.graph.num_nodes} nodes")
        classes = range(chances.shape[1])
        return judged.trust_table(classes, self._names_of(classes), chances)

    def calibrate(self, graph: Any, nodes: ArrayLike, *, keep: bool | None = None) -> Self:
        """Calibrate anew, without fitting, on nodes that are known to be in-distribution and were in no fit.

        Arguments:
            graph: The graph they live in.
            nodes: Their ids.
            keep: Keep their features and edges in the model; default: as before.
        """
        graph = as_graph(graph)
        before: Calibration | None = getattr(self, "calibration_", None)
        rows = np.unique(rows_named(graph, nodes))
        if len(rows) == 0:
            raise GraphError("there is no node to calibrate on: name some")
        another = before is not None and ids_are_places(graph) and before.nodes.rows_in(graph) is None
        seen = self.fit_nodes_.seen_in(graph)[rows]
        if seen.any() and not another:  # ids that are places name other nodes in another graph
            first = str(graph.node_ids[rows[seen.argmax()]])[:80]
            raise GraphError(
                f"{seen.sum():,} of the {len(rows):,} nodes were in the training graph, {first!r} first: "
                "calibrate on nodes that have arrived since, or on former calibration nodes"
            )
        if keep is None:
            keep = before is not None and before.features is not None
        self._calibrate(graph, rows, keep)
        return self

    def _calibrate(self, graph: Graph, rows: NDArray[np.int64], keep: bool) -> None:
        """Calibrate on some rows of a graph, and learn errors on those whose class is known."""
        if keep and graph.is_weighted:
            raise DegemError("kept calibration nodes have no weights of edges: use keep=False, or graph.unweighted()")
        result, labels = self.score(graph), numbered_as(graph, self.class_names_)
        self.calibration_ = Calibration.of(graph, rows, np.asarray(result.scores), labels, keep=keep)
        if result.probabilities is None:
            return
        p = conformal_p_values(self.calibration_.scores, result.scores)
        against = doubts(result.probabilities, graph.adjacency, p)
        predicted = np.asarray(self.classes_)[result.probabilities.argmax(axis=1)]
        weights = self.calibration_.learn_errors(rows, predicted, against)
        self.calibration_ = replace(self.calibration_, error_weights=weights)

    def _names_of(self, classes: Sequence[int]) -> list[str | int]:
        given = self.class_names_
        return [index if given is None else given[index] for index in classes]


def numbered_as(graph: Graph, class_names: tuple[str, ...] | None) -> NDArray[np.int64]:
    """The labels of a graph, numbered as ``class_names`` are; a class that is none of them comes after the last.

    Example:
        >>> labels = {"labels": [0, 1, -1], "class_names": ["blue", "red"]}
        >>> graph = Graph.from_arrays(features=np.eye(3), edges=[(0, 1)], **labels)
        >>> numbered_as(graph, ("red", "green"))
        array([ 2,  0, -1])
    """
    if graph.class_names is None or class_names is None or graph.class_names == class_names:
        return graph.labels
    places = {name: place for place, name in enumerate(class_names)}
    return np.array([*(places.get(name, len(class_names)) for name in graph.class_names), -1])[graph.labels]
