"""The mean hop features of a class equal those of the whole graph, averaged."""

import numpy as np
import pytest

from degem import Graph
from degem.propagation import hop_features as hops_module
from degem.propagation.hop_features import class_hop_means, hop_features


def test_class_means_equal_full_propagation(small_graph: Graph) -> None:
    x, labels, nodes = np.asarray(small_graph.features), small_graph.labels, np.arange(0, 120, 2)
    hops = hop_features(small_graph.adjacency, x, 3, self_weight=0.2)
    expected = np.stack([hops[:, nodes[labels[nodes] == label]].mean(axis=1) for label in range(3)], axis=1)
    means = class_hop_means(small_graph.adjacency, x, labels, nodes, 3, 0.2)
    np.testing.assert_allclose(means, expected, atol=1e-4)
    unlabelled = class_hop_means(small_graph.adjacency, x, np.full(120, -1), nodes, 3, 0.2)
    np.testing.assert_allclose(unlabelled, hops[:, nodes].mean(axis=1, keepdims=True), atol=1e-4)


@pytest.mark.parametrize("memory_budget", [None, 1e-9])
def test_class_means_do_not_depend_on_the_budget_and_read_the_features_once(
    small_graph: Graph, monkeypatch: pytest.MonkeyPatch, memory_budget: float | None
) -> None:
    x, nodes, read = np.asarray(small_graph.features), np.arange(60), []

    def encode(rows: np.ndarray) -> np.ndarray:
        read.append(len(rows))
        return 2 * rows

    arguments = (small_graph.adjacency, x, small_graph.labels, nodes, 3, 0.2)
    expected = class_hop_means(*arguments)
    monkeypatch.setattr(hops_module, "BLOCK", 50)
    means = class_hop_means(*arguments, encode=encode, memory_budget=memory_budget)
    np.testing.assert_allclose(means, 2 * expected, rtol=1e-5, atol=1e-6)
    assert read == [50, 50, 20]
