"""Features made ready for the encoder: rows of a bag of words on one scale, or columns of a table on one scale."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.features import Features, row_normalize

MIN_COLUMNS, MIN_ZEROS = 64, 0.5


def is_table(features: Features) -> bool:
    """Whether features are columns of a table: not a bag of words, which is non-negative, sparse and wide.

    Example:
        >>> is_table(np.array([[0.2, -1.0]], dtype=np.float32)), is_table(np.eye(100, dtype=np.float32))
        (True, False)
    """
    values = features.data if isinstance(features, sp.csr_array) else features
    zeros = 1 - np.count_nonzero(values) / (features.shape[0] * features.shape[1])
    return bool(features.shape[1] < MIN_COLUMNS or zeros < MIN_ZEROS or (values < 0).any())


def column_scales(features: Features) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The median of each column, and how wide its central 80 % are (its standard deviation where that is nothing).

    Example:
        >>> column_scales(np.arange(11.0, dtype=np.float32)[:, None])
        (array([5.], dtype=float32), array([8.], dtype=float32))
    """
    dense = features.toarray() if isinstance(features, sp.csr_array) else features
    low, median, high = np.quantile(dense, [0.1, 0.5, 0.9], axis=0)
    width = high - low
    width = np.where(width > 0, width, dense.std(axis=0))
    return median.astype(np.float32), np.where(width > 0, width, 1).astype(np.float32)


def encode_counts(features: Features) -> Features:
    """Rows of unit sum."""
    return row_normalize(features)


def encode_table(features: Features, median: NDArray[np.float32], width: NDArray[np.float32]) -> NDArray[np.float32]:
    r"""Columns as :math:`\mathrm{sign}(z)\log(1 + |z|)`, :math:`z = (x - m)/w`: skewed ones lose their long tails.

    Example:
        >>> encode_table(np.array([[5.0]], dtype=np.float32), np.float32([5]), np.float32([8]))
        array([[0.]], dtype=float32)
    """
    dense = features.toarray() if isinstance(features, sp.csr_array) else features
    z = (dense - median) / width
    return np.asarray(np.sign(z) * np.log1p(np.abs(z)), dtype=np.float32)
