"""What must hold for the parts of a Graph; each check returns the part as a read-only view.

Index arrays of sparse matrices are checked with NumPy alone: compiled code trusts them and writes where they point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.errors import GraphError, quoted
from degem.files import memory_limit
from degem.ops.features import Features
from degem.ops.mapped import release
from degem.ops.neighbours import is_weighted

MAX_LABEL = 1_000_000
BYTES_PER_COLUMN = 1024  # of any model: 64 weights, their gradients and moments


def check_compressed(
    name: str, indptr: NDArray[Any], indices: NDArray[Any], num_values: int, num_rows: int, num_columns: int
) -> None:
    """Refuse index arrays that are not those of a compressed matrix.

    ``indptr`` must have ``num_rows + 1`` entries, start at 0, never fall and end at ``num_values``; there must be as
    many ``indices``, each in 0 … ``num_columns − 1``. SciPy's own check is skipped where ``indptr`` ends at 0.

    Example:
        >>> import numpy as np
        >>> check_compressed("features", np.array([0, 1, 2]), np.array([1, 0]), 2, num_rows=2, num_columns=2)
        >>> check_compressed("features", np.array([0, 9, 0]), np.array([1, 0]), 2, num_rows=2, num_columns=2)
        Traceback (most recent call last):
        degem.errors.GraphError: features is not a valid CSR matrix: indptr falls after entry 1: build it with SciPy
    """
    problem = _compressed_problem(indptr, indices, num_values, num_rows, num_columns)
    if problem is not None:
        raise GraphError(f"{name} is not a valid CSR matrix: {problem}: build it with SciPy")


def _compressed_problem(
    indptr: NDArray[Any], indices: NDArray[Any], num_values: int, num_rows: int, num_columns: int
) -> str | None:
    for part, array in (("indptr", indptr), ("indices", indices)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            return f"{part} must be a row of whole numbers, got {array.dtype} of shape {array.shape}"
    if len(indptr) != num_rows + 1:
        return f"indptr has {len(indptr)} entries for {num_rows} rows"
    if indptr[0] != 0:
        return f"indptr starts at {indptr[0]}, not at 0"
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        return f"indptr falls after entry {int(falls.argmax())}"
    if not indptr[-1] == num_values == len(indices):
        return f"indptr ends at {indptr[-1]}, with {num_values} values and {len(indices)} indices"
    if len(indices) and not (indices.min() >= 0 and indices.max() < num_columns):
        return f"indices lie outside 0 … {num_columns - 1}"
    return None


def check_sparse(name: str, matrix: Any) -> None:
    """Refuse a SciPy matrix whose index arrays point outside it, whatever its format.

    Example:
        >>> import numpy as np
        >>> check_sparse("features", sp.csc_array(np.eye(2)))
    """
    if len(matrix.shape) != 2:
        raise GraphError(f"{name} must be a matrix, got shape {matrix.shape}")
    rows, columns = matrix.shape
    if matrix.format in ("csr", "csc"):
        major, minor = (rows, columns) if matrix.format == "csr" else (columns, rows)
        if matrix.data.ndim != 1:
            raise GraphError(f"{name} is not a valid CSR matrix: its values have shape {matrix.data.shape}")
        check_compressed(name, matrix.indptr, matrix.indices, len(matrix.data), major, minor)
    elif matrix.format == "bsr":
        if matrix.data.ndim != 3 or 0 in matrix.data.shape[1:]:
            raise GraphError(f"{name} is not a valid BSR matrix: its blocks have shape {matrix.data.shape}")
        height, width = matrix.data.shape[1:]
        if rows % height or columns % width:
            raise GraphError(f"{name} is not a valid BSR matrix: blocks of {height} × {width} do not fill it")
        check_compressed(name, matrix.indptr, matrix.indices, len(matrix.data), rows // height, columns // width)
    elif matrix.format == "coo":
        for axis, (index, size) in enumerate(zip(matrix.coords, matrix.shape, strict=True)):
            if index.ndim != 1 or index.dtype.kind not in "iu" or len(index) != len(matrix.data):
                raise GraphError(f"{name} is not a valid COO matrix: the indices of axis {axis} do not fit its values")
            if len(index) and not (index.min() >= 0 and index.max() < size):
                raise GraphError(f"{name} is not a valid COO matrix: indices of axis {axis} outside 0 … {size - 1}")


def checked_csr(name: str, matrix: Any) -> sp.csr_array:
    """A SciPy matrix of any format as CSR, its index arrays checked before and after the conversion."""
    check_sparse(name, matrix)
    if matrix.format == "csr":
        return sp.csr_array(matrix)
    if matrix.format not in ("csc", "bsr", "coo"):
        matrix = matrix.tocoo()
        check_sparse(name, matrix)
    csr = sp.csr_array(matrix)
    check_sparse(name, csr)
    return csr


def csr_from_parts(
    name: str, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> sp.csr_array:
    """A CSR matrix of parts that come from outside, without a copy."""
    if data.ndim != 1 or min(shape) < 0:
        raise GraphError(f"{name} is not a valid CSR matrix: values of shape {data.shape} for a matrix of {shape}")
    check_compressed(name, indptr, indices, len(data), *shape)
    try:
        return sp.csr_array((data, indices, indptr), shape=shape, copy=False)
    except (ValueError, TypeError, OverflowError) as error:
        raise GraphError(f"{name} is not a valid CSR matrix: {error}") from None


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view, so that the caller's own array keeps its flags."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _frozen_csr(matrix: sp.csr_array) -> sp.csr_array:
    parts = (_frozen(matrix.data), _frozen(matrix.indices), _frozen(matrix.indptr))
    view = sp.csr_array(parts, shape=matrix.shape, copy=False)
    view.has_sorted_indices = True
    view.has_canonical_format = True
    return view


def checked_features(features: Any) -> Features:
    """Features of shape (n, d₀), n and d₀ at least 1: numbers, finite in float32; CSR stays CSR."""
    if getattr(features, "ndim", None) != 2:
        raise GraphError(f"features must be a matrix (nodes × columns), got shape {np.shape(features)}")
    if 0 in features.shape:
        raise GraphError(f"a graph needs at least one node and one feature column, got features of {features.shape}")
    if features.dtype.kind not in "biuf":
        raise GraphError(
            f"features must be numbers, got dtype {features.dtype}: encode categories as 0/1 columns first"
        )
    with np.errstate(over="ignore"):  # what overflows becomes infinite and is named below
        return _checked_sparse(features) if sp.issparse(features) else _checked_dense(features)


def _checked_sparse(features: Any) -> sp.csr_array:
    if features.shape[1] * BYTES_PER_COLUMN > memory_limit():  # a matrix without values may be of any width
        raise GraphError(f"features: a model of {features.shape[1]:,} columns does not fit into the free memory")
    matrix = _checked_csr("features", features)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    finite = np.isfinite(matrix.data)
    if not finite.all():
        raise _not_finite(int(np.searchsorted(matrix.indptr, finite.argmin(), side="right")) - 1)
    return _frozen_csr(matrix)


def _checked_dense(features: Any) -> NDArray[np.float32]:
    dense, rows = np.asarray(features, dtype=np.float32), 1 << 16
    for start in range(0, len(dense), rows):  # blocks: no n × d₀ temporary on large memory maps
        finite = np.isfinite(dense[start : start + rows])
        if not finite.all():
            raise _not_finite(start + int(finite.all(axis=1).argmin()))
        release(dense)
    return _frozen(dense)


def _not_finite(row: int) -> GraphError:
    return GraphError(f"features: row {row} holds NaN, an infinity or a value beyond float32: clean or fill it first")


def _checked_csr(name: str, matrix: Any) -> sp.csr_array:
    """A float32 CSR matrix whose indices lie where they should, int32 where that suffices (half the memory traffic).

    It is made of its parts: SciPy's ``astype`` merges duplicates, and flags that a caller set would be believed.
    """
    csr = checked_csr(name, matrix)
    index = np.int32 if max(csr.nnz, *csr.shape) <= np.iinfo(np.int32).max else np.int64
    indices, indptr = csr.indices.astype(index, copy=False), csr.indptr.astype(index, copy=False)
    return sp.csr_array((csr.data.astype(np.float32, copy=False), indices, indptr), shape=csr.shape)


def checked_adjacency(adjacency: Any, num_nodes: int) -> sp.csr_array:
    """A symmetric CSR matrix of positive weights, without self-loops, of shape (n, n)."""
    if not isinstance(adjacency, sp.csr_array):
        raise GraphError(
            f"adjacency must be a scipy.sparse.csr_array, got {type(adjacency).__name__}: use Graph.from_arrays"
        )
    if adjacency.shape != (num_nodes, num_nodes):
        raise GraphError(f"adjacency has shape {adjacency.shape}, but there are {num_nodes} nodes")
    matrix = _checked_csr("adjacency", adjacency)
    if not matrix.has_canonical_format:
        raise GraphError("adjacency has duplicate or unsorted entries: use Graph.from_arrays, which tidies them")
    weighted = is_weighted(matrix)
    if weighted and not (np.isfinite(matrix.data) & (matrix.data > 0)).all():
        raise GraphError("adjacency holds a weight that is no positive number: an edge that is not there has no entry")
    loops, one_way = count_loops_and_one_way(matrix)
    if loops:
        raise GraphError("adjacency has self-loops: use Graph.from_arrays, which drops them")
    if one_way:
        raise GraphError("adjacency is not symmetric: use Graph.from_arrays, which symmetrises it")
    if weighted and not np.array_equal(sp.csr_array(matrix.T).data, matrix.data):
        raise GraphError("adjacency has other weights one way than the other: use Graph.from_arrays")
    return _frozen_csr(matrix)


def checked_labels(labels: Any, num_nodes: int, class_names: tuple[str, ...] | None) -> NDArray[np.int64]:
    """One class index a node, −1 where unknown, each with a name where there are class names."""
    array = checked_column("labels", labels, num_nodes)
    if array.dtype.kind not in "iu":
        raise GraphError(
            f"labels must be whole numbers, got dtype {array.dtype}: use Graph.from_arrays or encode_labels"
        )
    lowest, highest = array.min(), array.max()
    if lowest < -1:
        raise GraphError(f"labels: node {int(array.argmin())} has {lowest}; unlabelled is -1")
    if class_names is not None and highest >= len(class_names):
        raise GraphError(
            f"labels: node {int(array.argmax())} has class {highest}, but there are {len(class_names)} class names"
        )
    if highest > MAX_LABEL:
        raise GraphError(f"labels: class index {highest} is too large: number the classes 0, 1, 2, …")
    return _frozen(np.asarray(array, dtype=np.int64))


def checked_column(name: str, column: Any, num_nodes: int) -> NDArray[Any]:
    """One value a node."""
    array = np.asarray(column)
    if array.shape != (num_nodes,):
        raise GraphError(f"{name} has shape {array.shape}, expected one value for each of the {num_nodes} nodes")
    if array.dtype.kind in "OU":
        check_texts(name, array.tolist())
    return _frozen(array)


def check_texts(name: str, values: Iterable[Any]) -> None:
    """Refuse text with lone surrogates: no file can hold it."""
    for position, value in enumerate(values):
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise GraphError(f"{name}: {quoted(value)} at {position} is no text that a file can hold") from None


def checked_columns(kind: str, columns: Mapping[str, Any], num_nodes: int, dtype: Any) -> Mapping[str, NDArray[Any]]:
    """Named columns of one value a node, of ``dtype`` if one is given."""
    checked = {name: checked_column(f"{kind} {quoted(name)}", column, num_nodes) for name, column in columns.items()}
    for name, column in checked.items():
        if dtype is not None and column.dtype != dtype:
            raise GraphError(f"{kind} {quoted(name)} has dtype {column.dtype}, expected {np.dtype(dtype).name}")
    return MappingProxyType(checked)


def count_loops_and_one_way(matrix: sp.csr_array) -> tuple[int, int]:
    """How many entries of a square pattern lie on its diagonal, and how many lack their mirror image.

    Each entry above the diagonal looks for its mirror below by bisection; what is below and was not found has none
    above. No memory is needed beyond the matrix.

    Arguments:
        matrix: A CSR matrix of shape (n, n), its indices sorted and without duplicates.

    Example:
        >>> count_loops_and_one_way(sp.csr_array(np.array([[1, 1], [0, 0]])))
        (1, 1)
    """
    indptr, indices = _frozen(matrix.indptr), _frozen(matrix.indices)  # numba compiles for read-only arrays alone
    loops, upper, missing = _count(indptr, indices)
    lower, found = matrix.nnz - loops - upper, upper - missing
    return int(loops), int(missing + lower - found)


@numba.njit(cache=True)
def _count(indptr: Any, indices: Any) -> Any:
    loops, upper, missing = 0, 0, 0
    for row in range(len(indptr) - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            column = indices[entry]
            if column == row:
                loops += 1
            elif column > row:
                upper += 1
                low, high = indptr[column], indptr[column + 1]
                while low < high:
                    middle = (low + high) // 2
                    if indices[middle] < row:
                        low = middle + 1
                    else:
                        high = middle
                if low == indptr[column + 1] or indices[low] != row:
                    missing += 1
    return loops, upper, missing
