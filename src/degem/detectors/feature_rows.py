"""Feature rows for detectors that know no graph: a node's own features, and the mean of its neighbours' beside them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from degem.graph import Graph
from degem.ops.features import Features

BLOCK = 1024  # rows or columns made dense at a time
BAG_SHARE, BAG_COLUMNS = 0.25, 64


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
    means = sp.diags_array(1 / np.maximum(graph.degrees, 1)) @ sums
    if isinstance(graph.features, sp.csr_array):
        return sp.csr_array(sp.hstack([graph.features, sp.csr_array(means).astype(np.float32)]))
    return np.hstack([graph.features, np.asarray(means, dtype=np.float32)])


def is_bag_of_words(features: Features) -> bool:
    """Whether features look like counts of words: many columns, mostly zeros, nothing negative.

    Example:
        >>> is_bag_of_words(np.eye(100, dtype=np.float32)), is_bag_of_words(np.ones((3, 5), dtype=np.float32))
        (True, False)
    """
    values = features.data if isinstance(features, sp.csr_array) else features
    mostly_zeros = np.count_nonzero(values) < BAG_SHARE * np.prod(features.shape)
    return bool(features.shape[1] >= BAG_COLUMNS and mostly_zeros and not (values < 0).any())
