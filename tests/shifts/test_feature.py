import numpy as np
import scipy.sparse as sp

from degem import Graph
from degem.shifts.manipulation import feature_shift


def test_features_are_mixtures_of_two_rows_and_edges_stay(small_graph: Graph) -> None:
    shifted = feature_shift(small_graph, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    first, second = rng.integers(120, size=(2, 120))
    weight = rng.random(120, dtype=np.float32)[:, None]
    expected = weight * small_graph.features[first] + (1 - weight) * small_graph.features[second]
    np.testing.assert_allclose(shifted.features, expected, rtol=1e-6)
    assert (shifted.adjacency != small_graph.adjacency).nnz == 0


def test_sparse_and_dense_features_shift_alike(small_graph: Graph) -> None:
    sparse = small_graph.replace(features=sp.csr_array(small_graph.features))
    dense = feature_shift(small_graph, np.random.default_rng(0)).features
    mixed = feature_shift(sparse, np.random.default_rng(0)).features
    assert isinstance(mixed, sp.csr_array)
    np.testing.assert_allclose(mixed.toarray(), dense, rtol=1e-5, atol=1e-6)
