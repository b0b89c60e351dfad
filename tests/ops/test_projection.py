"""The projection keeps what matters and sees what is new."""

import numpy as np
import scipy.sparse as sp

from degem.ops.estimates import fit_projection


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


def test_wanted_directions_are_kept_and_random_ones_see_neither() -> None:
    features = low_rank(5, seed=4)
    wanted = np.random.default_rng(5).standard_normal((2, 30)).astype(np.float32)
    found = fit_projection(features, 7, 3, seed=0, wanted=wanted)
    kept, random = found[:, :7], found[:, 7:]
    np.testing.assert_allclose(kept.T @ kept, np.eye(7), atol=1e-4)
    np.testing.assert_allclose(wanted @ kept @ kept.T, wanted, atol=1e-4)
    np.testing.assert_allclose(features @ kept @ kept.T, features, atol=1e-3)
    np.testing.assert_allclose(kept.T @ random, 0, atol=1e-5)


def test_nothing_wanted_or_nothing_lost_changes_nothing() -> None:
    features = low_rank(5, seed=6)
    for rank, wanted in ((8, np.zeros((3, 30), dtype=np.float32)), (30, features[:2])):
        plain = fit_projection(features, rank, 3, seed=0)
        np.testing.assert_array_equal(fit_projection(features, rank, 3, seed=0, wanted=wanted), plain)
