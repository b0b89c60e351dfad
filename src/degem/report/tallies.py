"""Counts at every position of the slider, so that the page can move its threshold whatever the size of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from degem.errors import GraphError

MAX_GROUPS = 24


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


def alpha_grid(chosen: float) -> NDArray[np.float64]:
    """The false-alarm rates the slider stops at, from 0.1 % to 50 %, ``chosen`` among them.

    Example:
        >>> grid = alpha_grid(0.05)
        >>> float(grid[0]), float(grid[-1]), 0.05 in grid
        (0.001, 0.5, True)
    """
    steps = [float(f"{alpha:.2g}") for alpha in np.geomspace(0.001, 0.5, 120)]
    return np.unique([*steps, chosen])


def levels(p_values: ArrayLike, alphas: ArrayLike) -> NDArray[np.int64]:
    """The first slider position at which each node is flagged; ``len(alphas)`` if at none.

    Example:
        >>> levels([0.01, 0.02, 0.9], [0.01, 0.05]).tolist()
        [0, 1, 2]
    """
    return np.searchsorted(np.asarray(alphas), np.asarray(p_values), side="left").astype(np.int64)


def flagged_counts(level: NDArray[np.int64], num_alphas: int, groups: Groups | None = None) -> NDArray[np.int64]:
    """How many nodes are flagged at each slider position, of shape (positions,) or (groups, positions).

    Example:
        >>> flagged_counts(np.array([0, 1, 2]), 2).tolist()
        [1, 2]
    """
    if groups is None:
        return np.bincount(level, minlength=num_alphas + 1)[:num_alphas].cumsum()
    width = num_alphas + 1
    table = np.bincount(groups.codes * width + level, minlength=len(groups.labels) * width)
    return table.reshape(len(groups.labels), width)[:, :num_alphas].cumsum(axis=1)


def by_class(codes: NDArray[np.int64], names: Sequence[str]) -> Groups:
    """The nodes by predicted class; beyond ``MAX_GROUPS`` classes the smallest share one group."""
    if len(names) <= MAX_GROUPS:
        return Groups("predicted class", tuple(names), codes)
    sizes = np.bincount(codes, minlength=len(names))
    kept = np.sort(np.argsort(-sizes, kind="stable")[: MAX_GROUPS - 1])
    home = np.full(len(names), len(kept), dtype=np.int64)
    home[kept] = np.arange(len(kept))
    return Groups("predicted class", (*(names[index] for index in kept), "other"), home[codes])


def by_degree(degrees: NDArray[np.int64]) -> Groups:
    """The nodes by degree, in groups that double: 0, 1, 2–3, 4–7, …

    Example:
        >>> by_degree(np.array([0, 1, 3, 4])).labels
        ('0', '1', '2–3', '4–7')
    """
    codes = np.ceil(np.log2(degrees + 1)).astype(np.int64)
    labels = ["0", "1", *(f"{2**power:,}–{2 ** (power + 1) - 1:,}" for power in range(1, 62))]
    return Groups("degree", tuple(labels[: int(codes.max(initial=0)) + 1]), codes)


def by_time(name: str, values: NDArray[Any], num_bins: int = 12) -> Groups:
    """The nodes by a time column: one group a value if there are few, else groups of about equal size.

    Arguments:
        name: The column's name.
        values: Numbers, dates, or text that reads as dates.
        num_bins: Groups where there are many values.
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
        binned = pd.qcut(column, num_bins, duplicates="drop")
        labels = [f"{_moment(cut.left)} – {_moment(cut.right)}" for cut in binned.cat.categories]
    codes = binned.cat.codes.to_numpy().astype(np.int64)
    if (codes < 0).any():
        labels.append("unknown")
        codes = np.where(codes < 0, len(labels) - 1, codes)
    return Groups(name, tuple(labels), codes)


def _moment(value: Any) -> str:
    return value.strftime("%Y-%m-%d") if isinstance(value, pd.Timestamp) else f"{value:.6g}"


@dataclass(frozen=True)
class Histogram:
    """Shares of several samples in common bins.

    Arguments:
        edges: The bins' edges; the outer bins also hold what lies beyond them.
        shares: One row of shares a sample, each adding up to 1.
        clipped: Whether something does lie beyond them.
    """

    edges: NDArray[np.float64]
    shares: NDArray[np.float64]
    clipped: bool


def histogram(samples: Sequence[NDArray[Any]], num_bins: int = 60) -> Histogram:
    """A histogram over the middle 99 % of each sample, so that one stray score does not flatten the rest."""
    filled = [sample for sample in samples if len(sample)]
    quantiles = np.array([np.quantile(sample, [0.005, 0.995]) for sample in filled])
    low, high = quantiles[:, 0].min(), quantiles[:, 1].max()
    margin = 0.05 * (high - low) or max(abs(low) * 1e-3, 1e-9)
    edges = np.linspace(low - margin, high + margin, num_bins + 1)
    counts = np.array([np.histogram(np.clip(sample, edges[0], edges[-1]), edges)[0] for sample in samples])
    sizes = np.maximum([[len(sample)] for sample in samples], 1)
    clipped = any(sample.min() < edges[0] or sample.max() > edges[-1] for sample in filled)
    return Histogram(edges, counts / sizes, clipped)
