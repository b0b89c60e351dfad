"""Nodes that a fit keeps to itself, so that it learns what new in-distribution nodes look like to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from degem.detectors.split import TrainingSet

SHARE, FEWEST, MOST = 0.2, 30, 2000


def hold_out(training: TrainingSet) -> NDArray[np.int64]:
    """Some training nodes, sorted: a fifth of them, at least 30 but never more than a third; of each class one stays.

    Of a handful of training nodes there may be none.

    Arguments:
        training: The training set; its seed is the seed of the draw.
    """
    order = np.random.default_rng([training.seed, 2]).permutation(training.nodes)
    labels = training.graph.labels[order]
    stays = np.zeros(len(order), dtype=np.bool_)
    stays[np.unique(labels, return_index=True)[1]] = True
    count = min(max(int(SHARE * len(order)), FEWEST), MOST, len(order) // 3)
    return np.sort(order[~stays][:count])
