"""The projection keeps what matters and sees what is new."""

import numpy as np
import scipy.sparse as sp

from degem.ops.projection import fit_projection


def low_rank(rank: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((60, rank)) @ rng.standard_normal((rank, 30))).astype(np.float32)


def test_leading_directions_hold_low_rank_features() -> None:
    features = low_rank(5, seed=0)
    leading = fit_projection(features, 5, 0, seed=0)
    np.testing.assert_allclose(features @ leading @ leading.T, features, atol=1e-3)
    np.testing.assert_allclose(leading.T @ leading, np.eye(5), atol=1e-4)


def test_random_directions_see_only_what_the_leading_ones_do_not() -> None:
    features = low_rank(5, seed=1)
    random = fit_projection(features, 5, 3, seed=0)[:, 5:]
    np.testing.assert_allclose(features @ random, 0, atol=1e-3)
    unseen = np.random.default_rng(2).standard_normal(30).astype(np.float32)
    assert np.linalg.norm(unseen @ random) > 0.1


def test_sparse_and_dense_agree_and_short_graphs_are_padded() -> None:
    features = low_rank(5, seed=3)
    dense, sparse = (fit_projection(matrix, 4, 2, seed=0) for matrix in (features, sp.csr_array(features)))
    np.testing.assert_allclose(np.abs(dense[:, :4]), np.abs(sparse[:, :4]), atol=1e-3)
    assert fit_projection(features[:3], 8, 2, seed=0).shape == (30, 10)
