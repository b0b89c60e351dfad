"""What differs between two windows: columns, predicted classes, degrees, by how far."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from degem.detectors.base import Detector
from degem.explain.columns import Column, columns_of
from degem.graph import Graph
from degem.groups import Groups
from degem.ops.features import Features, dense

Window = tuple[Graph, NDArray[np.int64]]  # a graph, and the nodes of it that count
MOST, LEVEL = 5, 0.01


@dataclass(frozen=True)
class Drift:
    """One thing that differs between two windows by more than chance.

    Arguments:
        kind: ``column``, ``predicted class`` or ``degree``.
        name: Which column, class or degrees.
        effect: How far the two distributions are apart, from 0 to 1: of numbers the largest difference of their
            cumulative distributions (Kolmogorov and Smirnov's), of categories half the sum of the differences of their
            shares, of one class or of some degrees the difference of its share.
        reference: What is usual in the reference window.
        current: What is usual in the current one.
    """

    kind: str
    name: str
    effect: float
    reference: str
    current: str


def chance_effect(first: int, second: int, num_tests: int) -> float:
    r"""The effect that chance alone hardly exceeds, in any of some tests: :math:`\sqrt{\tfrac12 \log\tfrac{2k}{0.01}
    (\tfrac1n + \tfrac1m)}`, after Dvoretzky, Kiefer and Wolfowitz.

    Example:
        >>> round(chance_effect(1000, 1000, 10), 3)
        0.087
    """
    return math.sqrt(math.log(2 * max(num_tests, 1) / LEVEL) / 2 * (1 / first + 1 / second))


def drifted_columns(detector: Detector, reference: Window, current: Window) -> list[Drift]:
    """The columns that drifted most, the farthest first."""
    first, second = (graph.features[rows] for graph, rows in (reference, current))
    columns = columns_of(detector, reference[0])
    effects = np.array([*_effects(columns, first, second)])
    beyond = chance_effect(first.shape[0], second.shape[0], len(columns))
    found = []
    for place in _most(effects, beyond):
        column = columns[place]
        values = [dense(rows[:, column.positions]) for rows in (first, second)]
        words = sp.issparse(first) or sp.issparse(second)
        usual = [f"{(there != 0).mean():.1%} not zero" if words else column.usual(there) for there in values]
        found.append(Drift("column", column.name, float(effects[place]), *usual))
    return found


def drifted_groups(both: Groups, num_first: int) -> list[Drift]:
    """The groups whose share drifted most.

    Arguments:
        both: The nodes of the reference window, and behind them those of the current one.
        num_first: How many are of the reference window.
    """
    halves = np.split(both.codes, [num_first])
    first, second = (np.bincount(codes, minlength=len(both.labels)) / max(len(codes), 1) for codes in halves)
    effects, beyond = np.abs(second - first), chance_effect(len(halves[0]), len(halves[1]), len(both.labels))
    return [
        Drift(both.title, both.labels[place], float(effects[place]), f"{first[place]:.1%}", f"{second[place]:.1%}")
        for place in _most(effects, beyond)
    ]


def _most(effects: NDArray[np.float64], beyond: float) -> list[int]:
    return [place for place in np.argsort(-effects, kind="stable")[:MOST].tolist() if effects[place] > beyond]


def _effects(columns: list[Column], first: Features, second: Features) -> Iterator[float]:
    if isinstance(first, sp.csr_array) or isinstance(second, sp.csr_array):  # of words, whether they are there
        shares = [np.bincount(rows.nonzero()[1], minlength=rows.shape[1]) / rows.shape[0] for rows in (first, second)]
        yield from np.abs(shares[1] - shares[0])
        return
    for column in columns:
        one, other = first[:, column.positions], second[:, column.positions]
        if column.schema.treatment == "category":
            apart = (other > 0).mean(axis=0) - (one > 0).mean(axis=0)
            yield (np.abs(apart).sum() + abs(apart.sum())) / 2  # of what is in no category, too
        else:
            yield max(ks_2samp(a, b, method="asymp").statistic for a, b in zip(one.T, other.T, strict=True))
