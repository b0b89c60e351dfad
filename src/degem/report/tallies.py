"""Counts at every position of the slider, so that the page can move its threshold whatever the size of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.groups import Groups


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


@dataclass(frozen=True)
class Histogram:
    """Shares of several samples in common bins."""

    edges: NDArray[np.float64]  # the bins' edges; the outer bins also hold what lies beyond them
    shares: NDArray[np.float64]  # one row of shares a sample, each adding up to 1
    clipped: bool  # whether something does lie beyond them


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
