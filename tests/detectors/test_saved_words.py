"""A model of a bag of words, saved and loaded."""

from pathlib import Path

import numpy as np

from degem import DeGEM, Graph
from degem.detectors.degem.encoding import is_table


def test_a_model_of_words_is_loaded_as_it_was(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = (rng.random((200, 80)) < 0.1).astype(np.float32)
    graph = Graph.from_arrays(features=features, edges=rng.integers(200, size=(500, 2)), labels=np.arange(200) % 3)
    assert not is_table(graph.features)
    detector = DeGEM(num_epochs=2, latent_dim=16, num_hops=2).fit(graph)
    detector.save(tmp_path / "model")
    same = DeGEM.load(tmp_path / "model")
    np.testing.assert_array_equal(same.decision_function(graph), detector.decision_function(graph))
