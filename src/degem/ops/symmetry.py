"""Whether a sparse pattern is that of an undirected graph, without making its transpose."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp


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
    loops, upper, missing = _count(_read_only(matrix.indptr), _read_only(matrix.indices))
    lower, found = matrix.nnz - loops - upper, upper - missing
    return int(loops), int(missing + lower - found)


def _read_only(array: Any) -> Any:
    """A read-only view: numba compiles once, not also for writeable arrays."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


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
