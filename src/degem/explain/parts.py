"""What a score's difference from that of ordinary nodes is made of, in parts that add up to it; those of any method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from degem.detectors.base import Detector
from degem.explain.setting import Setting
from degem.ops.features import dense, stacked

Kind = Literal["own", "neighbours", "surroundings"]
Candidate = tuple[str, float, Callable[[], str]]  # a name, an amount, and what tells the detail
NUM_SHOWN, LEAST_SHARE = 5, 1e-3
NUM_TRIED = 8  # columns, of a method whose score is not made of rows


@dataclass(frozen=True)
class Part:
    """One part of the difference.

    Arguments:
        kind: What it is about: the node's own columns, its neighbours, or what lies beyond.
        name: The column, the neighbour, or what stands for the rest of its kind.
        amount: How much it raises the score, negative where it lowers it.
        detail: What the node has there, and what is usual.
    """

    kind: Kind
    name: str
    amount: float
    detail: str = ""


def listed(kind: Kind, rest: str, total: float, candidates: Sequence[Candidate]) -> list[Part]:
    """The largest of some parts, and one for what they lack to the total of their kind.

    Example:
        >>> [part.amount for part in listed("own", "rest", 3.0, [("a", 2.0, str), ("b", 0.0, str)])]
        [2.0, 1.0]
    """
    largest = sorted(candidates, key=lambda candidate: -abs(candidate[1]))[:NUM_SHOWN]
    least = LEAST_SHARE * max((abs(amount) for _, amount, _ in largest), default=0)
    parts = [Part(kind, name, amount, detail()) for name, amount, detail in largest if abs(amount) > least]
    return [*parts, Part(kind, rest, total - sum(part.amount for part in parts))]


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
