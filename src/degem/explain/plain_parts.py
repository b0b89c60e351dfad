"""Parts of any method's score: what changes where own features are those of an ordinary node."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.detectors.base import Detector
from degem.explain.details import column_detail
from degem.explain.parts import Part, listed
from degem.explain.setting import Setting
from degem.graph import Graph
from degem.ops.features import dense

NUM_TRIED = 8


def plain_parts(detector: Detector, setting: Setting) -> list[list[Part]]:
    """The parts of the score of each explained node, from a few more passes over the graph.

    In each pass every explained node has one column, or all, from the ordinary node most like it. What a score falls
    by is the part of the column, or of all of them; the rest of its height is due to neighbours and surroundings.
    """
    graph, nodes = setting.judged.whole, setting.explained
    mine, theirs = (dense(graph.features[rows]) for rows in (nodes, setting.nodes[:, 0]))
    scores = np.asarray(setting.judged.scored.scores, dtype=np.float64)[nodes]

    def fall(features: NDArray[np.float32]) -> NDArray[np.float64]:
        return scores - detector.score(_with_rows(graph, nodes, features)).scores[nodes]

    own, columns = fall(theirs), []
    for chosen in setting.order[:, :NUM_TRIED].T:
        exchanged = mine.copy()
        for place, column in enumerate(chosen):
            positions = setting.columns[column].positions
            exchanged[place, positions] = theirs[place, positions]
        columns.append(fall(exchanged))
    return [
        [
            *listed(
                "own",
                "its other columns",
                float(own[place]),
                [
                    (column.name, float(amount[place]), partial(column_detail, setting, column, mine[place]))
                    for column, amount in zip(_columns(setting, place), columns, strict=True)
                ],
            ),
            Part("surroundings", "its neighbours and surroundings", setting.rise(place) - float(own[place])),
        ]
        for place in range(len(nodes))
    ]


def _columns(setting: Setting, place: int) -> list[Any]:
    return [setting.columns[column] for column in setting.order[place, :NUM_TRIED]]


def _with_rows(graph: Graph, nodes: NDArray[np.int64], features: NDArray[np.float32]) -> Graph:
    """The graph with other features of some nodes."""
    index = np.arange(graph.num_nodes)
    index[nodes] = graph.num_nodes + np.arange(len(nodes))
    if isinstance(graph.features, sp.csr_array):
        return graph.replace(features=sp.csr_array(sp.vstack([graph.features, sp.csr_array(features)]))[index])
    return graph.replace(features=np.concatenate([graph.features, features])[index])
