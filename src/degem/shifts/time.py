"""The time shift: papers of later years (Arxiv)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.graph import Graph

ID_UNTIL, EXPOSURE_UNTIL = 2015, 2017
OOD_YEARS = (2018, 2019, 2020)

FeaturesOf = Callable[[sp.csr_array], NDArray[np.float32]]


def induced(graph: Graph, nodes: NDArray[np.bool_], features_of: FeaturesOf | None = None) -> Graph:
    """The graph of some nodes and the edges among them.

    Arguments:
        graph: The whole graph.
        nodes: Which nodes to keep.
        features_of: Makes features from an adjacency. Structural features are made anew on the kept edges alone, with
            the same random vector a node, so that they know nothing of the nodes left out.
    """
    if features_of is None:
        return graph.subgraph(nodes)
    keep = sp.diags_array(nodes.astype(np.float32))
    kept_edges = sp.csr_array(keep @ graph.adjacency @ keep)
    kept_edges.eliminate_zeros()
    return graph.replace(features=features_of(kept_edges)).subgraph(nodes)
