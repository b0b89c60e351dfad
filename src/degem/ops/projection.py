"""A few columns that stand for many: leading singular directions of the features, wanted ones, and random ones."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.features import Features
from degem.ops.mapped import release

MAX_ROWS, MAX_WANTED = 50_000, 32


def sample_rows(features: Features, seed: int) -> Features:
    """All rows of the features, or a seeded sample where there are very many: enough for their leading directions.

    Example:
        >>> sample_rows(np.eye(5, dtype=np.float32), 0).shape
        (5, 5)
    """
    rows = features.shape[0]
    if rows <= MAX_ROWS:
        return features
    some = features[np.sort(np.random.default_rng(seed).choice(rows, MAX_ROWS, replace=False))]
    release(features)
    return some


def fit_projection(
    features: NDArray[np.float32] | sp.csr_array,
    rank: int,
    num_random: int,
    *,
    seed: int,
    wanted: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    r"""A projection :math:`P = [V \,\|\, U \,\|\, G]`, of shape :math:`(d_0, r + q)`.

    :math:`V` holds leading right singular vectors of the features (Halko et al. 2011), :math:`U` the leading
    directions in which wanted vectors point out of their span, at most 32 of the :math:`r`. :math:`G` holds :math:`q`
    Gaussian directions orthogonal to both: features that training never saw show up there.

    Arguments:
        features: The features :math:`X`, of shape :math:`(n, d_0)`.
        rank: How many singular and wanted directions :math:`r`, at most as many as there are.
        num_random: How many random directions :math:`q`.
        seed: Seed of the singular and of the random ones.
        wanted: Vectors not to be lost, of shape (any, :math:`d_0`).

    Example:
        >>> fit_projection(np.eye(5, dtype=np.float32), 2, 1, seed=0).shape
        (5, 3)
    """
    from sklearn.utils.extmath import randomized_svd  # slow to load, and scoring does without

    rng = np.random.default_rng(seed)
    width = features.shape[1]
    # every direction kept needs a row of its own; short graphs get fewer, padded with zeros so that shapes follow rank
    found = min(rank, width, features.shape[0])
    kept = randomized_svd(features, found, n_iter=2, random_state=seed)[2].T
    if wanted is not None and width > rank:  # otherwise nothing is lost
        number = min(np.linalg.matrix_rank(wanted), MAX_WANTED, rank)
        kept = _extended(kept[:, : rank - number], wanted.T.astype(np.float64), number)
    random = rng.standard_normal((width, num_random)) / np.sqrt(max(num_random, 1))
    random -= kept @ (kept.T @ random)
    padding = np.zeros((width, rank - kept.shape[1]))
    return np.hstack([kept, padding, random]).astype(np.float32)


def _extended(basis: NDArray[np.float64], vectors: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """An orthonormal basis with the leading directions of the vectors' part outside of it."""
    outside = vectors - basis @ (basis.T @ vectors)
    directions, lengths, _ = np.linalg.svd(outside, full_matrices=False)
    return np.hstack([basis, directions[:, :number][:, lengths[:number] > 1e-6 * np.linalg.norm(vectors)]])
