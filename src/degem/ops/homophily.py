"""How much more often neighbours share a class than chance would have it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

PSEUDO_EDGES = 2.0


def excess_homophily(adjacency: sp.csr_array, labels: NDArray[np.int64]) -> float:
    r"""The homophily of known labels beyond chance, :math:`\eta = \max(0, (h - h_0)/(1 - h_0))`, between 0 and 1.

    :math:`h` is the share of edges between labelled nodes whose ends agree, with two pseudo-edges at the chance level
    :math:`h_0 = \sum_y \pi_y^2`, so that a handful of edges proves nothing. Without two classes it is 0.

    Arguments:
        adjacency: The adjacency :math:`A`.
        labels: A class for each node, −1 where unknown.

    Example:
        >>> pairs = sp.csr_array(np.kron(np.eye(50), [[0, 1], [1, 0]]))
        >>> round(excess_homophily(pairs, np.repeat(np.arange(50) % 2, 2)), 2)
        0.96
    """
    shares = np.bincount(labels[labels >= 0]) / max((labels >= 0).sum(), 1)
    chance = float((shares**2).sum())
    if len(shares) < 2 or chance >= 1:
        return 0.0
    known = np.flatnonzero(labels >= 0)
    among = adjacency[known][:, known].tocoo()
    agree = float((labels[known[among.row]] == labels[known[among.col]]).sum()) / 2
    share = (agree + PSEUDO_EDGES * chance) / (among.nnz / 2 + PSEUDO_EDGES)
    return max(0.0, (share - chance) / (1 - chance))
