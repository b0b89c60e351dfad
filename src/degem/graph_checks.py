"""What must hold for the parts of a Graph; each check returns the part as a read-only view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.errors import GraphError

Features = NDArray[np.float32] | sp.csr_array


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view, so that the caller's own array keeps its flags."""
    view = array.view()
    view.flags.writeable = False
    return view


def _frozen_csr(matrix: sp.csr_array) -> sp.csr_array:
    parts = (_frozen(matrix.data), _frozen(matrix.indices), _frozen(matrix.indptr))
    view = sp.csr_array(parts, shape=matrix.shape, copy=False)
    view.has_sorted_indices = True
    view.has_canonical_format = True
    return view


def checked_features(features: Any) -> Features:
    if features.ndim != 2:
        raise GraphError(f"features must have two dimensions (nodes × columns), got shape {features.shape}")
    if features.shape[0] == 0 or features.shape[1] == 0:
        raise GraphError(
            f"a graph needs at least one node and one feature column, got features of shape {features.shape}"
        )
    values = features.data if sp.issparse(features) else features
    if values.dtype.kind not in "biuf":
        raise GraphError(f"features must be numbers, got dtype {values.dtype}: encode categories as 0/1 columns first")
    if sp.issparse(features):
        matrix = sp.csr_array(features, dtype=np.float32)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        _check_finite(matrix.data, lambda entry: int(np.searchsorted(matrix.indptr, entry, side="right")) - 1)
        return _frozen_csr(_small_indices(matrix))
    with np.errstate(over="ignore"):
        dense = np.asarray(features, dtype=np.float32)
    width = dense.shape[1]
    for start in range(0, dense.shape[0], 1 << 16):  # blocks: no n × d₀ temporary on large memory maps
        block = dense[start : start + (1 << 16)]
        _check_finite(block.reshape(-1), lambda entry, start=start: start + entry // width)
    return _frozen(dense)


def _check_finite(values: NDArray[np.float32], row_of: Callable[[int], int]) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row = row_of(int(np.argmin(finite)))
        raise GraphError(
            f"features: row {row} holds NaN, an infinity or a value beyond float32: clean or fill it first"
        )


def checked_adjacency(adjacency: Any, num_nodes: int) -> sp.csr_array:
    if not isinstance(adjacency, sp.csr_array):
        raise GraphError(
            f"adjacency must be a scipy.sparse.csr_array, got {type(adjacency).__name__}: use Graph.from_arrays"
        )
    if adjacency.shape != (num_nodes, num_nodes):
        raise GraphError(f"adjacency has shape {adjacency.shape}, but there are {num_nodes} nodes")
    matrix = _small_indices(sp.csr_array(adjacency, dtype=np.float32))
    if not matrix.has_canonical_format:
        raise GraphError("adjacency has duplicate or unsorted entries: use Graph.from_arrays, which tidies them")
    if matrix.diagonal().any():
        raise GraphError("adjacency has self-loops: use Graph.from_arrays, which drops them")
    if matrix.nnz and not np.all(matrix.data == 1):
        raise GraphError("adjacency holds weights: edges are 0 or 1")
    transposed = matrix.T.tocsr()
    if not (np.array_equal(transposed.indptr, matrix.indptr) and np.array_equal(transposed.indices, matrix.indices)):
        raise GraphError("adjacency is not symmetric: use Graph.from_arrays, which symmetrises it")
    return _frozen_csr(matrix)


def _small_indices(matrix: sp.csr_array) -> sp.csr_array:
    """The same matrix with int32 indices where they suffice: half the memory traffic of int64."""
    if max(matrix.nnz, *matrix.shape) > np.iinfo(np.int32).max or matrix.indices.dtype == np.int32:
        return matrix
    parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    return sp.csr_array(parts, shape=matrix.shape)


def checked_labels(labels: Any, num_nodes: int, class_names: tuple[str, ...] | None) -> NDArray[np.int64]:
    array = checked_column("labels", labels, num_nodes)
    if array.dtype.kind not in "iu":
        raise GraphError(
            f"labels must be whole numbers, got dtype {array.dtype}: use Graph.from_arrays or encode_labels"
        )
    array = np.asarray(array, dtype=np.int64)
    if array.min() < -1:
        raise GraphError(f"labels: node {int(array.argmin())} has {array.min()}; unlabelled is -1")
    if class_names is not None and array.max() >= len(class_names):
        raise GraphError(
            f"labels: node {int(array.argmax())} has class {array.max()}, but there are {len(class_names)} class names"
        )
    if array.max() > 1_000_000:
        raise GraphError(f"labels: class index {array.max()} is too large: number the classes 0, 1, 2, …")
    return _frozen(array)


def checked_column(name: str, column: Any, num_nodes: int) -> NDArray[Any]:
    array = np.asarray(column)
    if array.shape != (num_nodes,):
        raise GraphError(f"{name} has shape {array.shape}, expected one value for each of the {num_nodes} nodes")
    return _frozen(array)


def checked_columns(kind: str, columns: Mapping[str, Any], num_nodes: int, dtype: Any) -> Mapping[str, NDArray[Any]]:
    checked = {name: checked_column(f"{kind} {name!r}", column, num_nodes) for name, column in columns.items()}
    for name, column in checked.items():
        if dtype is not None and column.dtype != dtype:
            raise GraphError(f"{kind} {name!r} has dtype {column.dtype}, expected {np.dtype(dtype).name}")
    return MappingProxyType(checked)
