"""Which nodes train, validate and test."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Masks = dict[str, NDArray[np.bool_]]


def random_split(nodes: NDArray[np.bool_], seed: int, *, train: float = 0.1, val: float = 0.1) -> Masks:
    """A seeded random split of ``nodes``; the rest, 80 % by default, tests.

    Example:
        >>> split = random_split(np.ones(20, dtype=bool), seed=0)
        >>> [int(split[part].sum()) for part in ("train", "val", "test")]
        [2, 2, 16]
    """
    order = np.random.default_rng([seed, 0]).permutation(np.flatnonzero(nodes))
    first, second = round(train * len(order)), round((train + val) * len(order))
    parts = {"train": order[:first], "val": order[first:second], "test": order[second:]}
    return {name: np.isin(np.arange(len(nodes)), chosen) for name, chosen in parts.items()}


def keep_labels(train: NDArray[np.bool_], labels: NDArray[np.int64], rate: float, seed: int) -> NDArray[np.bool_]:
    """The training nodes that keep their label: a seeded share of each class, at least one node.

    Example:
        >>> kept = keep_labels(np.ones(6, dtype=bool), np.array([0, 0, 0, 0, 1, 1]), 0.5, seed=0)
        >>> np.bincount(np.array([0, 0, 0, 0, 1, 1])[kept])
        array([2, 1])
    """
    rng = np.random.default_rng([seed, 1])
    kept: list[NDArray[np.int64]] = []
    for label in np.unique(labels[train]):
        members = rng.permutation(np.flatnonzero(train & (labels == label)))
        kept.append(members[: max(1, round(rate * len(members)))])
    return np.isin(np.arange(len(train)), np.concatenate(kept))
