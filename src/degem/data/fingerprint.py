"""What tells one graph from another, in a few letters."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.graph import Graph


def fingerprint(settings: object, graph: Graph, *arrays: NDArray[Any]) -> str:
    """Equal for equal features, edges and labels, and equal further arrays.

    Arguments:
        settings: What else it shall depend on, by its ``repr``.
        graph: The graph.
        arrays: Further arrays of numbers, such as chosen nodes.

    Example:
        >>> one, other = (Graph.from_arrays(features=[[x], [1.0]], edges=[(0, 1)]) for x in (0.0, 2.0))
        >>> fingerprint("", one) == fingerprint("", one), fingerprint("", one) == fingerprint("", other)
        (True, False)
    """
    digest = hashlib.sha256(repr(settings).encode())
    features = graph.features
    parts = (features.indptr, features.indices, features.data) if isinstance(features, sp.csr_array) else (features,)
    weights = (graph.adjacency.data,) if graph.is_weighted else ()
    for part in (*weights, graph.adjacency.indptr, graph.adjacency.indices, graph.labels, *arrays, *parts):
        digest.update(str((part.dtype, part.shape)).encode())
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()
