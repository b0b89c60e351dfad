"""Nodes that a fit keeps to itself, so that it learns what new nodes look like to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from degem.detectors.split import TrainingSet

SHARE, FEWEST, MOST = 0.1, 30, 2000


def hold_out(training: TrainingSet) -> NDArray[np.int64]:
    """Some nodes of the training graph, sorted: a tenth of them, at least 30 but never more than a third.

    They need no label: of a few labelled ones a scale would be a guess. One training node of each class stays. Of a
    handful of nodes there may be none.

    Arguments:
        training: The training set; its seed is the seed of the draw.
    """
    order = np.random.default_rng([training.seed, 2]).permutation(training.graph.num_nodes)
    trained = np.flatnonzero(np.isin(order, training.nodes))
    _, first = np.unique(training.graph.labels[order[trained]], return_index=True)
    count = min(max(int(SHARE * len(order)), FEWEST), MOST, len(order) // 3)
    return np.sort(np.delete(order, trained[first])[:count])
