import numpy as np
import scipy.sparse as sp

from degem.ops.neighbours import structural_features


def ring(count):
    rows = np.arange(count)
    ones = np.ones(2 * count, dtype=np.float32)
    ends = (np.concatenate([rows, rows]), np.concatenate([(rows + 1) % count, (rows - 1) % count]))
    return sp.csr_array((ones, ends), shape=(count, count))


def test_log_degree_comes_first_and_isolated_nodes_are_zero():
    adjacency = sp.csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=np.float32))
    features = structural_features(adjacency)
    assert features.dtype == np.float32
    assert np.allclose(features[:, 0], np.log([2, 2, 1]))
    assert not features[2].any()


def test_equals_its_plain_transcription():
    adjacency = ring(7)
    random = np.random.default_rng(5).standard_normal((7, 3), dtype=np.float32)
    average = adjacency.toarray() / adjacency.toarray().sum(axis=1, keepdims=True)
    expected = np.hstack([np.full((7, 1), np.log(3)), average @ random, average @ average @ random])
    assert np.allclose(structural_features(adjacency, dim=6, seed=5), expected, atol=1e-6)


def test_the_seed_decides():
    assert np.array_equal(structural_features(ring(5)), structural_features(ring(5)))
    assert not np.array_equal(structural_features(ring(5)), structural_features(ring(5), seed=1))


def test_one_node():
    assert structural_features(sp.csr_array((1, 1), dtype=np.float32)).shape == (1, 33)
