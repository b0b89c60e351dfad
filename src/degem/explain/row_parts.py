r"""Parts of a score that is made of rows: Shapley values of own features, neighbours and the wider surroundings.

The node is mixed with an ordinary one: own features of either, among the neighbours of either, in the surroundings of
either. With :math:`v(S)` the score of the mixture that has what is in :math:`S` from the node,

.. math:: \phi_i = \sum_{S \not\ni i} \frac{|S|!\,(2 - |S|)!}{3!} \left(v(S \cup i) - v(S)\right)

adds up to the difference of the two scores (Shapley 1953; Lundberg & Lee, *A unified approach to interpreting model
predictions*, 2017). A column, a neighbour and the number of neighbours get what the score changes by if they alone are
exchanged, in the node and in the ordinary one, on average; what they lack together is one more part.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from degem.detectors.degem.encoding import BagOfWords
from degem.detectors.degem.row_scorer import RowScorer, ScoredRows
from degem.explain.parts import Candidate, Part, listed
from degem.explain.setting import Setting
from degem.graph import Graph
from degem.ops.features import dense

Array = NDArray[np.floating[Any]]
NUM_TRIED = 7


@runtime_checkable
class RowScored(Protocol):
    """A detector whose score of a node is a function of rows, which can be mixed with those of another node."""

    def row_scorer(self) -> RowScorer:
        """What scores rows."""

    def scored_rows(self, graph: Graph, nodes: NDArray[np.int64]) -> ScoredRows:
        """The rows of some nodes, as they are scored in the graph."""


class Mix(NamedTuple):
    """What a node's score is made of.

    Arguments:
        projected: Its own features, projected.
        size: Their length, and how many are not zero.
        rarity: How rare they are.
        degree: The number of its neighbours.
        around: The mean over them of what each brings: its features, those of its other neighbours, and its share of
            walks that return.
        beyond: The hops beyond two.
        smoothing: What smoothing over neighbours adds to each energy.
    """

    projected: Array
    size: Array
    rarity: Array
    degree: float
    around: Array
    beyond: Array
    smoothing: Array

    def having(self, other: Mix, fields: Sequence[str]) -> Mix:
        """This one with some fields of another."""
        return self._replace(**{name: getattr(other, name) for name in fields})


OWN, NEAR, FAR = ("projected", "size", "rarity"), ("degree", "around"), ("beyond", "smoothing")
Exchange = tuple[Mix, Mix]  # the node with one thing of the other, and the other with that of the node


class Mixer:
    """Some nodes of a graph, and the scores of mixtures of them.

    Arguments:
        detector: The detector.
        graph: The graph.
        nodes: The nodes to mix, and those that are to be named as neighbours.
    """

    def __init__(self, detector: RowScored, graph: Graph, nodes: NDArray[np.int64]) -> None:
        self.graph, self.scorer = graph, detector.row_scorer()
        everyone = np.unique(nodes).astype(np.int64)
        self._place = {int(node): place for place, node in enumerate(everyone)}
        self._rows = detector.scored_rows(graph, everyone)
        self._near = [place for place, hop in enumerate(self.scorer.hops) if 1 <= hop <= 2]
        self._far = [place for place, hop in enumerate(self.scorer.hops) if hop > 2]

    def mix_of(self, node: int) -> Mix:
        """A node as it is."""
        place, rows = self._place[node], self._rows
        around, returning = rows.hops[self._near, place], rows.returning[place]
        around[1:] -= returning * rows.hops[0, place]
        projected, statistics = self.scorer.project(self.graph.features[[node]])
        return Mix(
            projected[0],
            statistics[0, :2],
            statistics[0, 2:],
            float(rows.degrees[place]),
            np.append(around, returning),
            rows.hops[self._far, place],
            rows.smoothing[place],
        )

    def brought_by(self, neighbour: int, node: int, weight: float) -> Array:
        """What a neighbour brings to the mean over those of a node."""
        place, hops = self._place[neighbour], self._rows.hops
        back = weight / float(self._rows.degrees[place])
        further = hops[self._near[:-1], place] - back * hops[0, self._place[node]]
        return np.concatenate([hops[0, place], further.ravel(), [back]])

    def scores(self, mixes: Sequence[Mix]) -> NDArray[np.float64]:
        """The score of each mixture."""
        projected, size, rarity, degree, around, beyond, smoothing = map(np.stack, zip(*mixes, strict=True))
        degrees, returning = degree.astype(np.float32), around[:, -1:].astype(np.float32)
        hops = np.empty((len(self.scorer.hops), len(mixes), self.scorer.width), dtype=np.float32)
        hops[0] = projected / np.sqrt(np.where(degrees > 0, degrees, 1))[:, None]
        hops[self._near] = around[:, :-1].reshape(len(mixes), len(self._near), -1).swapaxes(0, 1)
        hops[self._near[1:]] += returning * hops[0]
        hops[self._far] = beyond.swapaxes(0, 1)
        statistics = np.concatenate([size, rarity], axis=1)
        energies, _ = self.scorer.energies(hops, statistics, degrees, returning[:, 0].copy())
        found = self.scorer.result(energies + smoothing, degrees == 0, None, self._rows.combination)
        return np.asarray(found.scores, dtype=np.float64)


def row_parts(detector: RowScored, setting: Setting) -> list[list[Part]]:
    """The parts of the score of each explained node."""
    neighbours = [_tried(setting, int(node))[0] for node in setting.explained]
    everyone = np.concatenate([setting.explained, setting.nodes.ravel(), *neighbours])
    mixer = Mixer(detector, setting.judged.whole, everyone)
    return [_parts(mixer, setting, place) for place in range(len(setting.explained))]


def _parts(mixer: Mixer, setting: Setting, place: int) -> list[Part]:
    node, others = int(setting.explained[place]), setting.nodes[place]
    mine, theirs = mixer.mix_of(node), [mixer.mix_of(int(other)) for other in others]
    own, near, _ = shapley(mixer, mine, theirs)
    columns = listed("own", "its other columns", own, _columns(mixer, mine, theirs, setting, place))
    if mine.degree > 0:
        neighbours = listed("neighbours", "its other neighbours", near, _neighbours(mixer, mine, theirs, setting, node))
    else:
        neighbours = [Part("neighbours", "having no neighbours", near)]
    wider = setting.rise(place) - own - near
    return [*columns, *neighbours, Part("surroundings", "the wider surroundings", wider)]


def shapley(mixer: Mixer, mine: Mix, theirs: Sequence[Mix]) -> list[float]:
    """The parts of own features, neighbours and wider surroundings, on average over the others."""
    kinds = (OWN, NEAR, FAR)
    mixes = [
        other.having(mine, [name for kind, here in zip(kinds, which, strict=True) if here for name in kind])
        for other in theirs
        for which in product((False, True), repeat=3)
    ]
    values = mixer.scores(mixes).reshape(len(theirs), 2, 2, 2).mean(axis=0)
    gains = (np.diff(values, axis=kind).squeeze(kind) for kind in range(3))
    return [float(2 * gain[0, 0] + gain[0, 1] + gain[1, 0] + 2 * gain[1, 1]) / 6 for gain in gains]


def _alone(mixer: Mixer, mine: Mix, theirs: Sequence[Mix], exchanges: Sequence[Sequence[Exchange]]) -> list[float]:
    """What the score changes by where one thing alone is exchanged with each of the others, both ways on average."""
    mixes = [mix for things in exchanges for pair in things for mix in pair]
    found = mixer.scores([mine, *theirs, *mixes])
    before, changed = found[: 1 + len(theirs)], found[1 + len(theirs) :].reshape(len(exchanges), len(theirs), 2)
    amounts = (before[0] - changed[:, :, 0]) + (changed[:, :, 1] - before[1:])
    return [float(amount) for amount in amounts.mean(axis=1) / 2]


def _columns(mixer: Mixer, mine: Mix, theirs: Sequence[Mix], setting: Setting, place: int) -> list[Candidate]:
    """The columns in which the node differs most, each exchanged alone, and how many features are not zero.

    What is not zero, and how large, is left as it is where a column is exchanged: else each word of a text would be
    blamed for its length.
    """
    tried = [setting.columns[column] for column in setting.order[place, :NUM_TRIED]]
    rows = dense(mixer.graph.features[np.append(setting.nodes[place], setting.explained[place])])
    told = rows[-1]
    if isinstance(mixer.scorer.model.rows, BagOfWords):  # of which only shares count: words weigh alike in all rows
        rows = rows / np.maximum(
            rows.sum(axis=1, keepdims=True) / np.maximum((rows != 0).sum(axis=1)[:, None], 1), 1e-12
        )
    edited = []
    for column, other in product(tried, range(len(theirs))):
        for kept, taken in ((-1, other), (other, -1)):
            row = rows[kept].copy()
            row[column.positions] = rows[taken, column.positions]
            edited.append(row.astype(np.float32))
    features = zip(*mixer.scorer.project(np.stack(edited)), strict=True)

    def edit(mix: Mix) -> Mix:
        projected, statistics = next(features)
        return mix._replace(projected=projected, rarity=statistics[2:])

    exchanges = [[(mine.having(other, ["size"]), other.having(mine, ["size"])) for other in theirs]]
    exchanges += [[(edit(mine), edit(other)) for other in theirs] for _ in tried]
    details = [
        partial(setting.size_detail, told),
        *(partial(setting.column_detail, column, told) for column in tried),
    ]
    names = ["the number and size of its features", *(column.name for column in tried)]
    return list(zip(names, _alone(mixer, mine, theirs, exchanges), details, strict=True))


def _tried(setting: Setting, node: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The neighbours of the highest scores, and the weights of the edges to them."""
    row = setting.judged.whole.adjacency[[node]]
    first = np.argsort(-setting.judged.scored.scores[row.indices], kind="stable")[:NUM_TRIED]
    return row.indices[first].astype(np.int64), row.data[first]


def _neighbours(mixer: Mixer, mine: Mix, theirs: Sequence[Mix], setting: Setting, node: int) -> list[Candidate]:
    """Neighbours of high scores, each exchanged for an average one of the others, and the number of neighbours."""
    exchanges = [[(mine.having(other, ["degree"]), other.having(mine, ["degree"])) for other in theirs]]
    candidates = [("the number of its neighbours", partial(setting.degree_detail, node))]
    neighbours, weights = _tried(setting, node)
    for neighbour, weight in zip(neighbours.tolist(), weights.tolist(), strict=True):
        brought, share = mixer.brought_by(neighbour, node, weight), weight / mine.degree
        changes = [share * (brought - other.around) for other in theirs]
        exchanges.append(
            [
                (mine._replace(around=mine.around - change), other._replace(around=other.around + change))
                for change, other in zip(changes, theirs, strict=True)
            ]
        )
        name = f"neighbour {mixer.graph.node_ids[neighbour]}"
        candidates.append((name, partial(setting.neighbour_detail, neighbour)))
    amounts = _alone(mixer, mine, theirs, exchanges)
    return [(name, amount, detail) for (name, detail), amount in zip(candidates, amounts, strict=True)]
