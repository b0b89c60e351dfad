"""Parts of any method's score: what changes where own features are those of an ordinary node."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from degem.detectors.base import Detector
from degem.explain.parts import Part, listed
from degem.explain.setting import Setting
from degem.ops.features import dense, stacked

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
        index = np.arange(graph.num_nodes)
        index[nodes] = graph.num_nodes + np.arange(len(nodes))
        changed = graph.replace(features=stacked(graph.features, features)[index])
        return scores - detector.score(changed).scores[nodes]

    tried = setting.order[:, :NUM_TRIED]
    own, amounts = fall(theirs), np.empty(tried.shape)
    for rank, chosen in enumerate(tried.T):
        exchanged = mine.copy()
        for place, column in enumerate(chosen):
            positions = setting.columns[column].positions
            exchanged[place, positions] = theirs[place, positions]
        amounts[:, rank] = fall(exchanged)
    found = []
    for place, total in enumerate(own.tolist()):
        columns = [setting.columns[column] for column in tried[place]]
        details = [partial(setting.column_detail, column, mine[place]) for column in columns]
        names = [column.name for column in columns]
        candidates = list(zip(names, amounts[place].tolist(), details, strict=True))
        rest = Part("surroundings", "its neighbours and surroundings", setting.rise(place) - total)
        found.append([*listed("own", "its other columns", total, candidates), rest])
    return found
