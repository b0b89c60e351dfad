"""Models of words and of odd tables, saved and loaded."""

from pathlib import Path

import numpy as np
import pytest

from degem import DeGEM, Graph
from degem.ops.features import is_bag_of_words


def test_a_model_of_words_is_loaded_as_it_was(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features = (rng.random((200, 80)) < 0.1).astype(np.float32)
    graph = Graph.from_arrays(features=features, edges=rng.integers(200, size=(500, 2)), labels=np.arange(200) % 3)
    assert is_bag_of_words(graph.features)
    detector = DeGEM(num_epochs=2, latent_dim=16, num_hops=2).fit(graph)
    detector.save(tmp_path / "model")
    same = DeGEM.load(tmp_path / "model")
    np.testing.assert_array_equal(same.decision_function(graph), detector.decision_function(graph))


def tables() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "constant": np.ones((100, 3)),
        "two kinds of rows": np.eye(2)[np.arange(60) % 2],
        "ten rows, each thirty times": np.repeat(rng.standard_normal((10, 4)), 30, axis=0),
        "a handful": rng.standard_normal((12, 3)),
    }


@pytest.mark.parametrize("name", tables())
def test_a_model_of_an_odd_table_is_loaded_as_it_was(name: str, tmp_path: Path) -> None:
    features = tables()[name]
    edges = np.random.default_rng(1).integers(len(features), size=(3 * len(features), 2))
    graph = Graph.from_arrays(features=features, edges=edges)
    detector = DeGEM(num_epochs=2, latent_dim=8, num_hops=2).fit(graph)
    detector.save(tmp_path / "model")
    same = DeGEM.load(tmp_path / "model")
    np.testing.assert_array_equal(same.decision_function(graph), detector.decision_function(graph))


def test_the_strangest_row_of_all_is_scored() -> None:
    features = np.random.default_rng(0).standard_normal((300, 3)).astype(np.float32)
    edges = np.random.default_rng(1).integers(300, size=(900, 2))
    detector = DeGEM(num_epochs=2, latent_dim=8, num_hops=2).fit(Graph.from_arrays(features=features, edges=edges))
    features[7] = 1e20
    scores = detector.decision_function(Graph.from_arrays(features=features, edges=edges))
    assert scores.argmax() == 7


def test_a_small_table_is_judged_by_its_own_features() -> None:
    features = np.random.default_rng(0).standard_normal((45, 3)).astype(np.float32)
    edges = np.random.default_rng(1).integers(45, size=(100, 2))
    detector = DeGEM(num_epochs=2, latent_dim=8, num_hops=2).fit(Graph.from_arrays(features=features, edges=edges))
    features[7] += 50
    terms = detector.score(Graph.from_arrays(features=features, edges=edges)).terms
    assert terms["own"].argmax() == 7
