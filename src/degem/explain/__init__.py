"""Why a node was flagged: its score taken apart by hop and by feature, and the company it keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.calibration.judged import Judged, judge
from degem.detectors.base import Detector
from degem.errors import GraphError
from degem.explain.explanation import Explanation as Explanation
from degem.explain.hop_parts import HopScored, parts_of, strongest
from degem.explain.nearest import nearest_of
from degem.graph import Graph, as_graph


def explain(
    detector: Detector, graph: Any, nodes: ArrayLike, *, reference: Any | None = None, judged: Judged | None = None
) -> list[Explanation]:
    """Why ``nodes`` got their scores, in their order.

    Arguments:
        detector: A fitted detector.
        graph: The graph that holds the nodes.
        nodes: Their indices, or a mask.
        reference: The training graph; with it the nearest training nodes in latent space are named.
        judged: All nodes of the graph, judged already.

    Example:
        >>> from degem import DeGEM
        >>> from degem.data.demo import digits_graph
        >>> graph = digits_graph()
        >>> detector = DeGEM(num_epochs=2, latent_dim=16).fit(graph)
        >>> explain(detector, graph, [7])[0].node_id
        '7'
    """
    graph = as_graph(graph)
    rows = _checked_nodes(nodes, graph)
    judged = judge(detector, graph) if judged is None else judged
    scores, p_values = judged.result.scores, judged.p_values()
    parts = parts_of(detector, graph, rows, class_names(detector)) if isinstance(detector, HopScored) else None
    nearest = nearest_of(detector, graph, rows, as_graph(reference)) if reference is not None else [()] * len(rows)
    names = graph.feature_names or detector.feature_names_
    typical = float(np.median(judged.calibration_scores))
    found = []
    for position, row in enumerate(rows):
        neighbours = graph.adjacency.indices[graph.adjacency.indptr[row] : graph.adjacency.indptr[row + 1]]
        hop_parts = parts.values[position] if parts else np.zeros((0, 0))
        found.append(
            Explanation(
                node=int(row),
                node_id=str(graph.node_ids[row]),
                score=float(scores[row]),
                p_value=float(p_values[row]),
                compared_with=parts.compared_with[position] if parts else None,
                hop_parts=tuple(map(float, hop_parts.sum(axis=1))),
                features=strongest(hop_parts, names),
                degree=len(neighbours),
                neighbour_score=float(scores[neighbours].mean()) if len(neighbours) else float("nan"),
                neighbour_p_value=float(np.median(p_values[neighbours])) if len(neighbours) else float("nan"),
                typical_score=typical,
                nearest=nearest[position],
            )
        )
    return found


def class_names(detector: Detector) -> list[str]:
    """The names of a detector's classes, in the order of its probabilities."""
    if detector.class_names_ is None:
        return [str(label) for label in detector.classes_]
    return [detector.class_names_[label] for label in detector.classes_]


def _checked_nodes(nodes: ArrayLike, graph: Graph) -> NDArray[np.int64]:
    rows = np.atleast_1d(np.asarray(nodes))
    if rows.dtype == np.bool_ and rows.shape == (graph.num_nodes,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise GraphError("nodes must be indices into the graph, or a mask over its nodes")
    outside = rows[(rows < 0) | (rows >= graph.num_nodes)]
    if len(outside):
        raise GraphError(f"node {outside[0]} does not exist: the graph has nodes 0 … {graph.num_nodes - 1}")
    return rows.astype(np.int64)
