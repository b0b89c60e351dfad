"""Feature rows for detectors that know no graph: a node's own features, and the mean of its neighbours' beside them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from degem.graph import Graph
from degem.ops.features import Features
from degem.ops.neighbours import divisors

BLOCK = 1024  # rows made dense at a time
MEANS_AT_ONCE = "the means of neighbours' features are made in one product"


def feature_rows(graph: Graph, neighbour_means: bool) -> Features:
    """The features, with one-hop means appended where asked for; a node without neighbours has a mean of zeros.

    Example:
        >>> feature_rows(Graph.from_arrays(features=np.eye(2), edges=[(0, 1)]), neighbour_means=True)
        array([[1., 0., 0., 1.],
               [0., 1., 1., 0.]], dtype=float32)
    """
    if not neighbour_means:
        return graph.features
    sums = graph.adjacency @ graph.features.astype(np.float64)  # as good as exact, whatever the order of neighbours
    means = sp.diags_array(1 / divisors(graph.adjacency).astype(np.float64)) @ sums
    if isinstance(graph.features, sp.csr_array):
        return sp.csr_array(sp.hstack([graph.features, sp.csr_array(means).astype(np.float32)]))
    return np.hstack([graph.features, np.asarray(means, dtype=np.float32)])
