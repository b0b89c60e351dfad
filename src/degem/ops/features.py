"""Node features made ready for a network: scaled rows, and tensors."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Features = NDArray[np.float32] | sp.csr_array
BAG_SHARE, BAG_COLUMNS = 0.5, 64


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
    r"""The :math:`L_1` and the :math:`L_2` norm of each row.

    Example:
        >>> row_norms(np.array([[3.0, -4.0]], dtype=np.float32))
        (array([7.]), array([5.]))
    """
    if isinstance(features, sp.csr_array):
        values = features.data.astype(np.float64)
        rows, nodes = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr)), features.shape[0]
        absolute: NDArray[np.float64] = np.bincount(rows, weights=np.abs(values), minlength=nodes).astype(np.float64)
        square = np.bincount(rows, weights=np.square(values), minlength=nodes)
    else:
        absolute = np.abs(features).sum(axis=1, dtype=np.float64)
        square = np.einsum("ij,ij->i", features, features, dtype=np.float64)
    return absolute, np.sqrt(square)


def row_counts(features: Features) -> NDArray[np.int64]:
    """The number of values of each row that are not zero.

    Example:
        >>> row_counts(np.array([[3.0, 0.0], [1.0, 2.0]], dtype=np.float32))
        array([1, 2])
    """
    if isinstance(features, sp.csr_array):
        filled = np.concatenate([[0], np.cumsum(features.data != 0)])
        return np.asarray(np.diff(filled[features.indptr]), dtype=np.int64)
    return np.asarray(np.count_nonzero(features, axis=1), dtype=np.int64)


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


def is_bag_of_words(features: Features) -> bool:
    """Whether features look like counts of words: many columns, more than half of it zeros, nothing negative.

    Example:
        >>> is_bag_of_words(np.eye(100, dtype=np.float32)), is_bag_of_words(np.ones((3, 5), dtype=np.float32))
        (True, False)
    """
    values = features.data if isinstance(features, sp.csr_array) else features
    mostly_zeros = np.count_nonzero(values) < BAG_SHARE * np.prod(features.shape)
    return bool(features.shape[1] >= BAG_COLUMNS and mostly_zeros and not (values < 0).any())


def stacked(first: Features, second: Features) -> Features:
    """The rows of one matrix, and those of another below them.

    Example:
        >>> stacked(np.eye(2, dtype=np.float32), np.zeros((1, 2), dtype=np.float32)).shape
        (3, 2)
    """
    if isinstance(first, sp.csr_array):
        return sp.csr_array(sp.vstack([first, sp.csr_array(second)]))
    return np.concatenate([first, second])


def dense(features: Features) -> NDArray[np.float32]:
    """The features as a dense array.

    Example:
        >>> dense(sp.csr_array(np.eye(2)))
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return np.asarray(features.toarray() if isinstance(features, sp.csr_array) else features, dtype=np.float32)


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
    """A sparse CSR tensor of valid parts, without PyTorch's warning that it is new."""
    import torch  # slow to load, and reading a graph does without

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
    import torch

    return torch.from_numpy(array if array.flags.writeable else array.copy())
