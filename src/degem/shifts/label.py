"""The label shift: whole classes left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def label_parts(labels: NDArray[np.int64], cut_class: int) -> tuple[NDArray[np.bool_], ...]:
    """Which nodes are in-distribution (labels above the cut class), exposure (the cut class) and OOD (below).

    Arguments:
        labels: The class of each node, −1 where unknown; such nodes are in none of the three.
        cut_class: The cut class t.

    Example:
        >>> [part.tolist() for part in label_parts(np.array([0, 1, 2, -1]), 1)]
        [[False, False, True, False], [False, True, False, False], [True, False, False, False]]
    """
    return labels > cut_class, labels == cut_class, (labels >= 0) & (labels < cut_class)
