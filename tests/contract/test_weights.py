"""Weights of edges reach every method that looks at edges, and its model remembers whether it was fitted with them."""

import numpy as np
import pytest
import scipy.sparse as sp

from degem import Detector
from degem.errors import DegemError

METHODS = ["degem", "degem-published", "msp", "gnnsafe", "grasp", "gpn", "iforest-1hop", "feature-knn-1hop"]


@pytest.fixture(scope="module")
def weighted(small_graph):
    """Edges of very different weights."""
    half = sp.triu(small_graph.adjacency).tocoo()
    half.data = 10 ** np.random.default_rng(0).uniform(-2, 2, half.nnz).astype(np.float32)
    return small_graph.replace(adjacency=sp.csr_array(half + half.T))


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_used_kept_and_may_be_ignored(method, small_graph, weighted, tmp_path):
    kind = Detector.registry[method]
    settings = {"num_epochs": 2} if hasattr(kind(), "num_epochs") else {}
    plain, heavy = (kind(**settings).fit(graph) for graph in (small_graph, weighted))
    scores = heavy.decision_function(weighted)
    assert np.isfinite(scores).all()
    assert not np.allclose(scores, heavy.decision_function(small_graph))
    np.testing.assert_array_equal(plain.decision_function(weighted), plain.decision_function(small_graph))
    for name, detector in (("plain", plain), ("heavy", heavy)):
        detector.save(tmp_path / name)
        again = Detector.load(tmp_path / name)
        np.testing.assert_array_equal(again.decision_function(weighted), detector.decision_function(weighted))


def test_the_unit_of_weights_hardly_matters(weighted):
    cents = weighted.replace(adjacency=sp.csr_array(weighted.adjacency * np.float32(100)))
    scores = [
        Detector.registry["degem"](num_epochs=2).fit(graph).decision_function(graph) for graph in (weighted, cents)
    ]
    assert np.corrcoef(np.argsort(np.argsort(scores)))[0, 1] > 0.9


def test_kept_calibration_nodes_would_lose_their_weights(weighted):
    with pytest.raises(DegemError, match="keep_calibration_nodes"):
        Detector.registry["feature-knn"]().fit(weighted, keep_calibration_nodes=True)
