import numpy as np
import pytest

from degem import Graph
from degem.shifts.homophily import homophily_graph


def base_graph() -> Graph:
    labels = np.repeat(np.arange(6), [90, 80, 70, 60, 50, 10])
    return Graph.from_arrays(features=np.eye(6)[labels], edges=[(0, 1)], labels=labels)


@pytest.mark.parametrize("homophily", [0.0, 0.4, 1.0])
def test_the_homophily_is_the_one_asked_for(homophily: float) -> None:
    graph = homophily_graph(base_graph(), homophily, np.random.default_rng(0))
    assert graph.num_nodes == 5 * 50
    assert graph.num_edges > 1.8 * graph.num_nodes
    assert graph.homophily() == pytest.approx(homophily, abs=0.08)


def test_features_come_from_nodes_of_the_same_class() -> None:
    graph = homophily_graph(base_graph(), 0.5, np.random.default_rng(0))
    np.testing.assert_array_equal(graph.features.argmax(axis=1), graph.labels)
