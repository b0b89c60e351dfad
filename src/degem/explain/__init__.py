"""Why a node got its score: what raises and what lowers it, in its own columns, its neighbours and beyond."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.calibration.judged import Judged, judge
from degem.detectors.base import Detector
from degem.explain.explanation import Explanation as Explanation
from degem.explain.nearest import nearest_of
from degem.explain.parts import Part as Part
from degem.explain.parts import plain_parts
from degem.explain.row_parts import RowScored, row_parts
from degem.explain.setting import class_names as class_names
from degem.explain.setting import setting_of
from degem.graph import as_graph
from degem.graph_inputs import node_indices

NUM_TYPICAL = 2


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
        >>> found, = explain(detector, graph, [7])
        >>> bool(np.isclose(sum(part.amount for part in found.parts), found.score - found.typical_score))
        True
    """
    graph = as_graph(graph)
    rows = node_indices(np.atleast_1d(np.asarray(nodes)), graph.num_nodes)
    judged = judge(detector, graph) if judged is None else judged
    if len(rows) == 0:
        return []
    if isinstance(detector, RowScored):
        setting = setting_of(detector, judged, rows, NUM_TYPICAL)
        parts = row_parts(detector, setting)
    else:
        setting = setting_of(detector, judged, rows, 1)
        parts = plain_parts(detector, setting)
    nearest = nearest_of(detector, graph, rows, as_graph(reference)) if reference is not None else [()] * len(rows)
    p_values = judged.p_values()
    return [
        Explanation(
            node=int(row),
            node_id=str(graph.node_ids[row]),
            score=float(judged.scored.scores[row]),
            p_value=float(p_values[row]),
            typical_score=setting.typical_score(place),
            typical_nodes=tuple(str(graph.node_ids[other]) for other in setting.nodes[place]),
            parts=tuple(parts[place]),
            terms={
                name: float(term[row] - term[setting.nodes[place]].mean())
                for name, term in judged.scored.terms.items()
                if graph.degrees[row] > 0
            },
            degree=int(graph.degrees[row]),
            neighbour_p_value=_median(p_values[graph.adjacency[[row]].indices]),
            nearest=nearest[place],
        )
        for place, row in enumerate(rows)
    ]


def _median(values: NDArray[np.float64]) -> float:
    return float(np.median(values)) if len(values) else float("nan")
