"""Node features made ready for a network: scaled rows, and tensors."""

from __future__ import annotations

import warnings
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from degem.ops.propagation import match_threads

Features = NDArray[np.float32] | sp.csr_array


def row_normalize(features: Features) -> Features:
    r"""Rows of unit :math:`L_1` norm, :math:`x_i / \sum_j |x_{ij}|`; a row of zeros stays as it is.

    Arguments:
        features: The features :math:`X`, of shape :math:`(n, d_0)`, dense or CSR; not changed.

    Example:
        >>> row_normalize(np.array([[1.0, 3.0], [0.0, 0.0]], dtype=np.float32))
        array([[0.25, 0.75],
               [0.  , 0.  ]], dtype=float32)
    """
    return scale_rows(features, inverse(row_norms(features)[0]))


def row_norms(features: Features) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""The :math:`L_1` and the :math:`L_2` norm of each row, from one pass over the features and without a copy.

    Example:
        >>> row_norms(np.array([[3.0, -4.0]], dtype=np.float32))
        (array([7.]), array([5.]))
    """
    rows, width = features.shape
    if isinstance(features, sp.csr_array):
        values, bounds = features.data, features.indptr
    else:
        values, bounds = features.reshape(-1), np.arange(0, (rows + 1) * width, width)
    absolute, square = np.empty(rows), np.empty(rows)
    match_threads()
    _norms(values, bounds, absolute, square)
    return absolute, square


def scale_rows(features: Features, scale: NDArray[np.float32]) -> Features:
    """The features with each row times a number of its own; the indices of a CSR matrix are shared.

    Example:
        >>> scale_rows(np.ones((2, 1), dtype=np.float32), np.array([2, 3], dtype=np.float32))
        array([[2.],
               [3.]], dtype=float32)
    """
    if isinstance(features, sp.csr_array):
        scaled = features.data * np.repeat(scale, np.diff(features.indptr))
        return sp.csr_array((scaled, features.indices, features.indptr), shape=features.shape, copy=False)
    return features * scale[:, None]


def to_tensor(features: Features, device: str = "cpu") -> torch.Tensor:
    """Features as a tensor: strided from a dense array, sparse CSR from a CSR matrix.

    Memory is shared where the array is writeable, so treat the tensor as read-only.

    Arguments:
        features: The features, of shape (n, d₀).
        device: Where the tensor lives.

    Example:
        >>> to_tensor(sp.csr_array(np.eye(2, dtype=np.float32))).layout
        torch.sparse_csr
    """
    if isinstance(features, sp.csr_array):
        parts = (_shared(features.indptr), _shared(features.indices), _shared(features.data))
        return sparse_csr(*parts, features.shape).to(device)
    return _shared(features).to(device)


def sparse_csr(pointers: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, shape: Any) -> torch.Tensor:
    """A sparse CSR tensor of parts that are known to be sound, without PyTorch's warning that it is new."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(pointers, columns, values, size=shape, check_invariants=False)


def inverse(norms: NDArray[np.float64]) -> NDArray[np.float32]:
    """1 / norm, and 1 where the norm is zero, or so small that its inverse is no float32.

    Example:
        >>> inverse(np.array([4.0, 0.0]))
        array([0.25, 1.  ], dtype=float32)
    """
    smallest = 1 / np.finfo(np.float32).max
    return (1 / np.where(norms > smallest, norms, 1)).astype(np.float32)


def _shared(array: NDArray[Any]) -> torch.Tensor:
    """A tensor on the array's memory, or on a copy if it is read-only: PyTorch has no read-only tensors."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


@numba.njit(parallel=True, cache=True, fastmath=True)
def _norms(values: Any, bounds: Any, absolute: Any, square: Any) -> None:
    for row in numba.prange(len(absolute)):
        total, energy = 0.0, 0.0
        for entry in range(bounds[row], bounds[row + 1]):
            value = np.float64(values[entry])
            total += abs(value)
            energy += value * value
        absolute[row], square[row] = total, np.sqrt(energy)
