"""Partitions of a graph's nodes, to break a result down by: predicted class, degree, time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from degem.errors import GraphError

MAX_GROUPS = 24
NUM_BINS = 12  # of time, where there are many values


@dataclass(frozen=True)
class Groups:
    """A partition of the nodes.

    Arguments:
        title: What the nodes are grouped by.
        labels: The name of each group.
        codes: The group of each node.
    """

    title: str
    labels: tuple[str, ...]
    codes: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of nodes in each group."""
        return np.bincount(self.codes, minlength=len(self.labels))


def by_class(codes: NDArray[np.int64], names: Sequence[str]) -> Groups:
    """The nodes by predicted class; beyond ``MAX_GROUPS`` classes the smallest share one group."""
    if len(names) <= MAX_GROUPS:
        return Groups("predicted class", tuple(names), codes)
    sizes = np.bincount(codes, minlength=len(names))
    kept = np.sort(np.argsort(-sizes, kind="stable")[: MAX_GROUPS - 1])
    target = np.full(len(names), len(kept), dtype=np.int64)
    target[kept] = np.arange(len(kept))
    return Groups("predicted class", (*(names[index] for index in kept), "other"), target[codes])


def by_degree(degrees: NDArray[np.int64]) -> Groups:
    """The nodes by degree, in groups that double: 0, 1, 2–3, 4–7, …

    Example:
        >>> by_degree(np.array([0, 1, 3, 4])).labels
        ('0', '1', '2–3', '4–7')
    """
    codes = np.ceil(np.log2(degrees + 1)).astype(np.int64)
    labels = ["0", "1", *(f"{2**power:,}–{2 ** (power + 1) - 1:,}" for power in range(1, 62))]
    return Groups("degree", tuple(labels[: int(codes.max(initial=0)) + 1]), codes)


def by_time(name: str, values: NDArray[Any]) -> Groups:
    """The nodes by a time column: one group a value if there are few, else groups of about equal size.

    Arguments:
        name: The column's name.
        values: Numbers, dates, or text that reads as dates.
    """
    column = pd.Series(values)
    if not pd.api.types.is_numeric_dtype(column):
        try:
            column = pd.to_datetime(column, format="ISO8601")
        except (ValueError, TypeError):
            raise GraphError(f"column {name!r} holds neither numbers nor ISO dates: it cannot serve as time") from None
    known = column.dropna()
    if known.nunique() <= MAX_GROUPS:
        binned = column.astype("category")
        labels = [_moment(value) for value in binned.cat.categories]
    else:
        binned = pd.qcut(column, NUM_BINS, duplicates="drop")
        labels = [f"{_moment(cut.left)} – {_moment(cut.right)}" for cut in binned.cat.categories]
    codes = binned.cat.codes.to_numpy().astype(np.int64)
    if (codes < 0).any():
        labels.append("unknown")
        codes = np.where(codes < 0, len(labels) - 1, codes)
    return Groups(name, tuple(labels), codes)


def _moment(value: Any) -> str:
    return value.strftime("%Y-%m-%d") if isinstance(value, pd.Timestamp) else f"{value:.6g}"
