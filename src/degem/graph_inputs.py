"""From what users have (edge lists, matrices, label values) to the parts of a Graph, saying what was tidied."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.errors import GraphError, GraphNotice


def encode_labels(values: Sequence[Any]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Class indices and class names of raw label values; None, NaN and empty strings are unlabelled (−1).

    Example:
        >>> encode_labels(["b", "a", None])
        (array([ 1,  0, -1]), ('a', 'b'))
    """
    known = [not (value is None or value == "" or value != value) for value in values]
    present = {value for value, ok in zip(values, known, strict=True) if ok}
    try:
        ordered = sorted(present)
    except TypeError:
        ordered = sorted(present, key=str)
    index = {value: position for position, value in enumerate(ordered)}
    labels = np.array([index[value] if ok else -1 for value, ok in zip(values, known, strict=True)], dtype=np.int64)
    return labels, tuple(str(_plain_number(value)) for value in ordered)


def _plain_number(value: Any) -> Any:
    """A whole float as an int, so that class 3.0 is called "3"."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return int(value)
    return value


def infer_num_nodes(num_nodes: int | None, *sources: Any) -> int:
    """The number of nodes from the first source that tells it; a list of edges tells only the largest index."""
    *tables, edges = sources
    if num_nodes is not None:
        return int(num_nodes)
    for source in tables:
        if source is not None:
            return int(source.shape[0] if hasattr(source, "shape") else len(source))
    pairs = np.asarray(edges if edges is not None else [], dtype=np.int64)
    return int(pairs.max()) + 1 if pairs.size else 0


def edge_array(edges: Any, adjacency: Any, num_nodes: int) -> NDArray[np.int64]:
    """Edges as an array of shape (2, m), indices checked."""
    if (edges is None) == (adjacency is None):
        raise GraphError("give the edges once: either edges= (pairs of indices) or adjacency= (a SciPy matrix)")
    if adjacency is not None:
        matrix = sp.coo_array(adjacency)
        if matrix.shape != (num_nodes, num_nodes):
            raise GraphError(f"adjacency has shape {matrix.shape}, but there are {num_nodes} nodes")
        matrix.eliminate_zeros()
        if matrix.nnz and not np.all(matrix.data == 1):
            warnings.warn(GraphNotice("edge weights are dropped: every non-zero entry is an edge"), stacklevel=3)
        return np.stack([matrix.row, matrix.col]).astype(np.int64)
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return np.empty((2, 0), dtype=np.int64)
    if pairs.ndim != 2 or 2 not in pairs.shape:
        raise GraphError(f"edges must have shape (m, 2) or (2, m), got {pairs.shape}")
    pairs = pairs if pairs.shape[0] == 2 and pairs.shape[1] != 2 else pairs.T
    if pairs.dtype.kind not in "iu":
        raise GraphError(f"edges must be whole node indices, got dtype {pairs.dtype}")
    pairs = pairs.astype(np.int64)
    outside = (pairs < 0) | (pairs >= num_nodes)
    if outside.any():
        column = int(outside.any(axis=0).argmax())
        source, target = pairs[:, column]
        raise GraphError(f"edge {column} ({source}, {target}) points outside the nodes 0 … {num_nodes - 1}")
    return pairs


def tidy_adjacency(edges: NDArray[np.int64], num_nodes: int) -> sp.csr_array:
    """The symmetric 0/1 adjacency of a list of edges, saying what was changed."""
    if num_nodes == 0:
        raise GraphError("the graph is empty: it needs at least one node")
    loops = edges[0] == edges[1]
    if loops.any():
        warnings.warn(GraphNotice(f"{int(loops.sum()):,} self-loops dropped"), stacklevel=3)
        edges = edges[:, ~loops]
    ones = np.ones(edges.shape[1], dtype=np.float32)
    directed = sp.coo_array((ones, (edges[0], edges[1])), shape=(num_nodes, num_nodes)).tocsr()
    directed.sum_duplicates()
    repeats = edges.shape[1] - directed.nnz
    if repeats:
        warnings.warn(GraphNotice(f"{repeats:,} duplicate edges merged"), stacklevel=3)
    symmetric = sp.csr_array(directed + directed.T)
    one_way = 2 * (symmetric.nnz - directed.nnz)
    if 0 < one_way < symmetric.nnz or (
        one_way == symmetric.nnz and np.any(edges[0] > edges[1]) and np.any(edges[0] < edges[1])
    ):
        warnings.warn(GraphNotice(f"{one_way // 2:,} one-way edges symmetrised"), stacklevel=3)
    symmetric.data = np.ones_like(symmetric.data)
    symmetric.sort_indices()
    return symmetric


def label_array(labels: Any, num_nodes: int) -> NDArray[np.int64]:
    """Labels as int64, NaN and negative values as −1."""
    if labels is None:
        return np.full(num_nodes, -1, dtype=np.int64)
    array = np.asarray(labels)
    if array.dtype.kind == "f":
        missing = np.isnan(array)
        if not np.all(array[~missing] == np.floor(array[~missing])) or np.isinf(array).any():
            raise GraphError(
                "labels must be whole numbers (NaN or negative where unknown); encode names with encode_labels"
            )
        array = np.where(missing, -1, array)
    elif array.dtype.kind not in "iu":
        raise GraphError(f"labels must be whole numbers, got dtype {array.dtype}: encode names with encode_labels")
    return np.maximum(array.astype(np.int64), -1)


def pyg_features(features: Any) -> Any:
    if features.is_sparse or features.layout.__str__() == "torch.sparse_csr":
        coo = features.to_sparse_coo().coalesce().cpu()
        row, column = coo.indices().numpy()
        return sp.csr_array((coo.values().numpy(), (row, column)), shape=tuple(coo.shape))
    return features.detach().cpu().numpy()


def attribute_matrix(graph: Any, names: list[Any], attributes: Sequence[str]) -> NDArray[np.float64]:
    matrix = np.empty((len(names), len(attributes)))
    for row, name in enumerate(names):
        for column, attribute in enumerate(attributes):
            value = graph.nodes[name].get(attribute)
            if isinstance(value, str) or value is None:
                raise GraphError(f"node {name!r}: attribute {attribute!r} is {value!r}, expected a number")
            matrix[row, column] = value
    return matrix
