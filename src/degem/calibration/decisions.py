"""The verbs that calibration gives a detector: all of them from its ``score`` and its calibration nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.calibration.fit_nodes import FitNodes
from degem.calibration.judged import Exchangeable, ScoreResult, calibration_of, judge, rows_named
from degem.calibration.known import ids_are_places
from degem.calibration.nodes import Calibration
from degem.errors import DegemError, GraphError
from degem.graph import as_graph

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
        given, how = self.class_names_, {"by_degree": by_degree, "exchangeable": exchangeable}
        names = [index if given is None else given[index] for index in self.classes_]
        return judge(self, graph, only=only).table(names, alpha=alpha, fdr=fdr, **how)

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
        self.calibration_ = Calibration.of(graph, rows, np.asarray(self.score(graph).scores), keep=keep)
        return self
