"""From what users have (edge lists, matrices, label values) to the parts of a Graph, saying what was tidied."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.errors import GraphError, GraphNotice, one_line, quoted
from degem.files import memory_limit
from degem.graph_checks import MAX_LABEL, checked_csr, csr_from_parts

# Without features, labels or num_nodes the largest index tells how many nodes there are: one edge must not make 10⁹.
MAX_INFERRED_NODES = 1_000_000
NODES_PER_EDGE_END = 10
BYTES_PER_NODE = 200  # of a graph without features: labels, ids, edges, and the structural features made for it


def notice(text: str) -> None:
    """Tell the caller of a ``Graph.from_…`` what was tidied."""
    warnings.warn(GraphNotice(one_line(text)), stacklevel=4)


def as_array(name: str, values: Any) -> NDArray[Any]:
    """``values`` as a NumPy array; rows of different lengths, and hidden values, are an error."""
    if hasattr(values, "detach"):
        return tensor_array(name, values)
    if np.ma.isMaskedArray(values):
        raise GraphError(f"{name} is a masked array: fill what is masked first")
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError, RuntimeError):
        raise GraphError(f"{name} is not an array: its rows have different lengths, or it holds no numbers") from None


def names_or_none(name: str, values: Any) -> tuple[str, ...] | None:
    """Names as a tuple of texts."""
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise GraphError(f"{name} must be a list of texts, got {quoted(values)}")
    return tuple(map(str, values))


def arrays_by_name(name: str, values: Any) -> dict[str, NDArray[Any]]:
    """Named columns as arrays."""
    if not isinstance(values, Mapping | None):
        raise GraphError(f"{name} must be a dict of arrays, got {quoted(values)}")
    return {str(key): as_array(f"{name}: {quoted(key)}", value) for key, value in (values or {}).items()}


def matrix_or_none(name: str, values: Any) -> Any:
    """A SciPy matrix as it is, anything else as an array, None as None."""
    return values if values is None or sp.issparse(values) else as_array(name, values)


def encode_labels(values: Sequence[Any]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Class indices and class names of raw label values; None, NaN and empty strings are unlabelled (−1).

    Example:
        >>> encode_labels(["b", "a", None])
        (array([ 1,  0, -1]), ('a', 'b'))
    """
    classes: dict[str, Any] = {}
    names = [_class_name(value) for value in values]
    for row, (name, value) in enumerate(zip(names, values, strict=True)):
        if name is not None and classes.setdefault(name, value) != value:
            raise GraphError(
                f"labels: {quoted(value)} at {row} and {quoted(classes[name])} are two classes of one name"
            )
    try:
        ordered = sorted(classes, key=classes.__getitem__)
    except TypeError:
        ordered = sorted(classes)
    index = {name: position for position, name in enumerate(ordered)} | {None: -1}
    return np.array([index[name] for name in names], dtype=np.int64), tuple(ordered)


def _class_name(value: Any) -> str | None:
    """What a class is called, a whole float like an int; None where it is unknown."""
    if isinstance(value, float | np.floating):
        if value != value:
            return None
        value = int(value) if float(value).is_integer() else value
    if isinstance(value, Collection | np.ndarray) and not isinstance(value, str | bytes):
        raise GraphError(f"labels: {quoted(value)} is no class but a collection: give one value a node")
    name = "" if value is None or type(value).__name__ in ("NAType", "NaTType") else str(value)
    return name or None


def infer_num_nodes(num_nodes: int | None, *sources: Any) -> int:
    """The number of nodes from the first array that tells it; the last one, edges, tells only the largest index."""
    *tables, edges = sources
    if num_nodes is not None and (isinstance(num_nodes, bool) or not isinstance(num_nodes, Integral)):
        raise GraphError(f"num_nodes must be a whole number, got {quoted(num_nodes)}")
    if num_nodes is None:
        table = next((table for table in tables if table is not None), None)
        if table is not None:
            num_nodes = table.shape[0] if table.ndim else 0
        else:
            pairs = as_array("edges", [] if edges is None else edges)
            num_nodes = int(pairs.max()) + 1 if pairs.size and pairs.dtype.kind in "iu" else 0
            if num_nodes > max(MAX_INFERRED_NODES, NODES_PER_EDGE_END * pairs.size):
                raise GraphError(
                    f"edges: the largest index is {num_nodes - 1} with {pairs.size // 2} edges: number the nodes "
                    "0, 1, 2, … without gaps, or give num_nodes"
                )
    if num_nodes < 1:
        raise GraphError("the graph is empty: it needs at least one node")
    if num_nodes * BYTES_PER_NODE > memory_limit():
        raise GraphError(f"{num_nodes} nodes do not fit into the memory that is free (or DEGEM_MAX_READ_MIB allows)")
    return int(num_nodes)


def weighted_edges(
    edges: Any, adjacency: Any, weights: Any, num_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
    """Edges as an array of shape (2, m), indices checked, and their weights, those with weight 0 left out."""
    if (edges is None) == (adjacency is None):
        raise GraphError("give the edges once: either edges= (pairs of indices) or adjacency= (a SciPy matrix)")
    if edges is None:
        if weights is not None:
            raise GraphError("the entries of an adjacency are its weights: leave out edge_weights")
        pairs, weights = _matrix_edges(adjacency, num_nodes)
    else:
        pairs = _listed_edges(edges)
        weights = None if weights is None else as_array("edge_weights", weights)
    outside = ((pairs < 0) | (pairs >= num_nodes)).any(axis=0)
    if outside.any():
        first = int(outside.argmax())
        source, target = pairs[:, first]
        raise GraphError(f"edge {first} ({source}, {target}) points outside the nodes 0 … {num_nodes - 1}")
    if weights is None:
        return pairs, None
    known = _checked_weights(weights, pairs.shape[1])
    present = known != 0
    if not present.all():
        notice(f"{int((~present).sum()):,} edges of weight 0 dropped")
    return pairs[:, present], known[present]


def _checked_weights(weights: NDArray[Any], num_edges: int) -> NDArray[np.float32]:
    if weights.shape == (num_edges, 1):
        weights = weights[:, 0]
    if weights.shape != (num_edges,) or weights.dtype.kind not in "biuf":
        raise GraphError(f"edge_weights must be {num_edges} numbers, got {weights.dtype} of shape {weights.shape}")
    with np.errstate(over="ignore"):
        found = weights.astype(np.float32)
    wrong = ~(np.isfinite(found) & (weights >= 0)) | ((found == 0) & (weights != 0))
    if wrong.any():
        first = int(wrong.argmax())
        raise GraphError(
            f"edge_weights: edge {first} has weight {weights[first]}: a weight is a positive number (float32), 0 for "
            "no edge; correct it, or read the graph without weights (--ignore-weights)"
        )
    return found


def _matrix_edges(adjacency: Any, num_nodes: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    if adjacency.shape != (num_nodes, num_nodes):
        raise GraphError(f"adjacency has shape {adjacency.shape}, but there are {num_nodes} nodes")
    if adjacency.dtype.kind not in "biuf":
        raise GraphError(f"adjacency must hold numbers, got dtype {adjacency.dtype}")
    if sp.issparse(adjacency):
        adjacency = checked_csr("adjacency", adjacency)
    try:
        matrix: Any = sp.coo_array(adjacency)
    except ValueError as error:
        raise GraphError(f"adjacency is not a valid matrix: {error}") from None
    if not np.isfinite(matrix.data).all():
        raise GraphError("adjacency holds NaN or infinities: an edge is a non-zero number")
    present = matrix.data != 0
    return np.stack([matrix.row[present], matrix.col[present]]).astype(np.int64), matrix.data[present]


def _listed_edges(edges: Any) -> NDArray[np.int64]:
    pairs = as_array("edges", edges)
    if pairs.size == 0:
        return np.empty((2, 0), dtype=np.int64)
    if pairs.ndim != 2 or 2 not in pairs.shape:
        raise GraphError(f"edges must have shape (m, 2) or (2, m), got {pairs.shape}")
    if pairs.dtype.kind not in "iu":
        raise GraphError(f"edges must be whole node indices, got dtype {pairs.dtype}")
    return (pairs.T if pairs.shape[1] == 2 else pairs).astype(np.int64)


def tidy_adjacency(
    edges: NDArray[np.int64], num_nodes: int, weights: NDArray[np.float32] | None = None
) -> sp.csr_array:
    """The symmetric adjacency of a list of edges; self-loops, duplicates and one-way edges get a notice each.

    An edge that is given in one direction only counts as one-way, be it from a directed graph or from a list that
    names each undirected edge once: the two look the same. Weights of duplicates are added; an edge that has another
    weight in each direction has the mean of both.
    """
    loops = edges[0] == edges[1]
    if loops.any():
        notice(f"{int(loops.sum()):,} self-loops dropped")
        edges, weights = edges[:, ~loops], None if weights is None else weights[~loops]
    directed = _summed(edges, np.ones(edges.shape[1], dtype=np.float32), num_nodes)
    if repeats := edges.shape[1] - directed.nnz:
        notice(f"{repeats:,} duplicate edges merged" + (", their weights added" if weights is not None else ""))
    directed.data = np.ones_like(directed.data)
    symmetric = sp.csr_array(directed + directed.T)
    if one_way := symmetric.nnz - directed.nnz:
        notice(f"{one_way:,} edges given in one direction only taken as undirected: direction is dropped")
    symmetric.sort_indices()
    ways, symmetric.data = symmetric.data, np.ones_like(symmetric.data)
    if weights is not None:
        heavy = _summed(edges, weights, num_nodes)
        both = sp.csr_array(heavy + heavy.T)
        both.sort_indices()
        differing = np.count_nonzero(sp.csr_array(heavy - heavy.T).data) // 2 - one_way
        if differing:
            notice(f"{differing:,} edges with another weight in each direction have the mean of both")
        symmetric.data = both.data / ways
    return symmetric


def _summed(edges: NDArray[np.int64], values: NDArray[np.float32], num_nodes: int) -> sp.csr_array:
    matrix = sp.coo_array((values, (edges[0], edges[1])), shape=(num_nodes, num_nodes)).tocsr()
    matrix.sum_duplicates()
    return matrix


def node_indices(nodes: Any, num_nodes: int) -> NDArray[np.int64]:
    """The indices that a list of indices or a mask stands for."""
    array = as_array("nodes", nodes)
    if array.dtype == np.bool_ and array.shape == (num_nodes,):
        return np.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise GraphError(
            f"nodes must be indices or a mask of {num_nodes} booleans, got {array.dtype} of shape {array.shape}"
        )
    if array.size and not (array.min() >= 0 and array.max() < num_nodes):
        raise GraphError(f"nodes hold an index outside 0 … {num_nodes - 1}")
    return array.astype(np.int64)


def label_array(labels: Any) -> NDArray[np.int64]:
    """Labels as int64, NaN and negative values as −1."""
    array = as_array("labels", labels)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), -1, array)
        if np.isinf(array).any() or not np.all(array == np.floor(array)):
            raise GraphError(
                "labels must be whole numbers (NaN or negative where unknown); encode names with encode_labels"
            )
        array = np.maximum(array, -1)
    elif array.dtype.kind not in "iu":
        raise GraphError(f"labels must be whole numbers, got dtype {array.dtype}: encode names with encode_labels")
    if array.size and array.max() > MAX_LABEL:  # before the cast, which would wrap
        raise GraphError(f"labels: class index {array.max()} is too large: number the classes 0, 1, 2, …")
    return np.asarray(np.maximum(array.astype(np.int64), -1))


def pyg_features(features: Any) -> Any:
    """The features of a PyG ``Data``: a sparse tensor as CSR, a dense one as an array."""
    layout = str(getattr(features, "layout", "torch.strided"))
    if layout == "torch.sparse_csr":  # taken apart: PyTorch checks no indices of CSR tensors
        parts = (features.values(), features.col_indices(), features.crow_indices())
        data, indices, indptr = (tensor_array("x", part) for part in parts)
        return csr_from_parts("x", data, indices, indptr, _matrix_shape(features))
    if layout == "torch.sparse_coo":
        values, (row, column) = tensor_array("x", features._values()), _coordinates(features)
        matrix = sp.coo_array((values, (row, column)), shape=_matrix_shape(features))
        return checked_csr("x", matrix)
    return tensor_array("x", features)


def _matrix_shape(tensor: Any) -> tuple[int, int]:
    if tensor.ndim != 2 or tensor.dense_dim():
        raise GraphError(f"x must be a matrix (nodes × columns), got shape {tuple(tensor.shape)}")
    return int(tensor.shape[0]), int(tensor.shape[1])


def _coordinates(tensor: Any) -> NDArray[Any]:
    indices = tensor_array("x", tensor._indices())
    for axis, size in enumerate(_matrix_shape(tensor)):
        if indices.shape[1] and not (indices[axis].min() >= 0 and indices[axis].max() < size):
            raise GraphError(f"x: its sparse indices lie outside its shape {tuple(tensor.shape)}")
    return indices


def tensor_array(name: str, tensor: Any) -> NDArray[Any]:
    """A tensor as an array: gradients dropped, bfloat16 as float32; a tensor without values is an error.

    Example:
        >>> import torch
        >>> tensor_array("x", torch.ones(2, requires_grad=True))
        array([1., 1.], dtype=float32)
    """
    if not hasattr(tensor, "detach"):
        return as_array(name, tensor)
    if str(tensor.layout) != "torch.strided":
        raise GraphError(f"{name} is a tensor of layout {tensor.layout}: make it dense with .to_dense()")
    if str(tensor.device) == "meta":
        raise GraphError(f"{name} is a tensor on the meta device, which holds no values: load its values first")
    try:
        plain = tensor.detach().cpu().resolve_conj().resolve_neg()
        return np.asarray((plain.float() if str(plain.dtype) == "torch.bfloat16" else plain).numpy())
    except (RuntimeError, TypeError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0][:80]
        raise GraphError(f"{name} is a tensor that is no array ({reason}): make it a dense one of numbers") from None


def attribute_columns(graph: Any, names: list[Any], attribute: Any) -> tuple[NDArray[np.float64], list[str]]:
    """A node attribute of a NetworkX graph, a number or a vector of one length, as columns with names."""
    rows: list[NDArray[np.float64]] = []
    for name in names:
        value, row = graph.nodes[name].get(attribute), np.full((), np.nan)
        if isinstance(value, list | tuple | np.ndarray | np.number | float | int):
            with contextlib.suppress(OverflowError, TypeError, ValueError):
                row = np.asarray(value, dtype=np.float64)
        if row.ndim > 1 or not row.size or not np.isfinite(row).all() or (rows and row.shape != rows[0].shape):
            raise GraphError(
                f"node {quoted(name)}: attribute {quoted(attribute)} is {quoted(value)}, expected a number, or "
                "a vector of one length on all nodes"
            )
        rows.append(row)
    matrix = np.stack(rows)
    if matrix.ndim == 1:
        return matrix[:, None], [str(attribute)]
    return matrix, [f"{attribute}[{place}]" for place in range(matrix.shape[1])]


def attribute_matrix(
    graph: Any, names: list[Any], attributes: Sequence[Any] | None, label: Any
) -> tuple[NDArray[np.float64] | None, list[str] | None]:
    """Node attributes of a NetworkX graph as columns with names: those asked for, else all that every node has as such.

    Attributes that cannot be taken are named in a notice.
    """
    found, left_out = [], []
    for attribute in attributes or dict.fromkeys(key for _, held in graph.nodes(data=True) for key in held):
        if attributes or attribute != label:
            try:
                found.append(attribute_columns(graph, names, attribute))
            except GraphError:
                if attributes:
                    raise
                left_out.append(quoted(attribute))
    if left_out:
        notice(
            f"attributes that are not a number or a vector on every node are no features: {', '.join(left_out[:10])}"
        )
    matrices, columns = [matrix for matrix, _ in found], [name for _, named in found for name in named]
    return (np.hstack(matrices), columns) if columns else (None, None)
