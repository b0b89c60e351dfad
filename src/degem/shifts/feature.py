"""The feature shift: the same edges, features between those of two other nodes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from degem.graph import Graph
from degem.ops.features import Features


def feature_shift(graph: Graph, rng: np.random.Generator) -> Graph:
    r"""The same edges with features :math:`w\,x_i + (1-w)\,x_j` for random nodes i, j and :math:`w \sim U(0, 1)`.

    (Wu et al., *GNNSafe*, 2023.)

    Arguments:
        graph: The graph; not changed.
        rng: The source of randomness.

    Example:
        >>> graph = Graph.from_arrays(features=np.array([[0.0], [1.0]]), edges=[(0, 1)])
        >>> shifted = feature_shift(graph, np.random.default_rng(0)).features
        >>> bool((shifted >= 0).all() and (shifted <= 1).all())
        True
    """
    return graph.replace(features=mixed_rows(graph.features, graph.num_nodes, rng))


def mixed_rows(features: Features, count: int, rng: np.random.Generator) -> Features:
    """``count`` rows, each between two random rows of ``features``."""
    first, second = rng.integers(features.shape[0], size=(2, count))
    weight = rng.random(count, dtype=np.float32)
    if isinstance(features, sp.csr_array):
        near, far = sp.diags_array(weight, dtype=np.float32), sp.diags_array(1 - weight, dtype=np.float32)
        return sp.csr_array(near @ features[first] + far @ features[second])
    return np.asarray(weight[:, None] * features[first] + (1 - weight)[:, None] * features[second])
