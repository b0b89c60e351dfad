"""Index arrays of sparse matrices, checked with NumPy alone: compiled code trusts them and writes where they point."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
from numpy.typing import NDArray

from degem.errors import GraphError


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
