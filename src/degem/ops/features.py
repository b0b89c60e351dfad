"""Node features made ready for a network: scaled rows, and tensors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

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
    if isinstance(features, sp.csr_array):
        norms = abs(features) @ np.ones(features.shape[1], dtype=np.float32)
        scale = np.repeat(_inverse(norms), np.diff(features.indptr))
        parts = (features.data * scale, features.indices, features.indptr)
        return sp.csr_array(parts, shape=features.shape, copy=False)
    return features * _inverse(np.abs(features).sum(axis=1))[:, None]


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


def _inverse(norms: NDArray[Any]) -> NDArray[np.float32]:
    """1 / norm, and 1 where the norm is zero."""
    return (1 / np.where(norms > 0, norms, 1)).astype(np.float32)


def _shared(array: NDArray[Any]) -> torch.Tensor:
    """A tensor on the array's memory, or on a copy if it is read-only: PyTorch has no read-only tensors."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())
