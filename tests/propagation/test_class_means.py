"""The mean hop features of a class equal those of the whole graph, averaged."""

import numpy as np
import pytest

from degem import Graph
from degem.propagation import Propagator
from degem.propagation import hop_features as hops_module
from degem.propagation.hop_features import class_hop_means, hop_features


def test_class_means_equal_full_propagation(small_graph: Graph) -> None:
    x, labels, nodes = np.asarray(small_graph.features), small_graph.labels, np.arange(0, 120, 2)
    hops = hop_features(small_graph.adjacency, x, 3, self_weight=0.2)
    expected = np.stack([hops[:, nodes[labels[nodes] == label]].mean(axis=1) for label in range(3)], axis=1)
    means = class_hop_means(small_graph.adjacency, lambda rows: x[rows], labels, nodes, 3, 0.2)
    np.testing.assert_allclose(means, expected, atol=1e-4)
    unlabelled = class_hop_means(small_graph.adjacency, lambda rows: x[rows], np.full(120, -1), nodes, 3, 0.2)
    np.testing.assert_allclose(unlabelled, hops[:, nodes].mean(axis=1, keepdims=True), atol=1e-4)


@pytest.mark.parametrize("hops_at_once", [1, 2, 4])
def test_class_means_do_not_depend_on_the_budget_and_read_the_features_as_seldom_as_it_allows(
    small_graph: Graph, hops_at_once: int
) -> None:
    x, nodes, reads = np.asarray(small_graph.features), np.arange(60), []

    def rows_of(rows: slice) -> np.ndarray:
        reads.append(rows)
        return x[rows]

    arguments = (small_graph.labels, nodes, 3, 0.2)
    expected = class_hop_means(small_graph.adjacency, lambda rows: x[rows], *arguments)
    budget = 4 * 120 * 3 * (hops_at_once + 1)  # with one more that is on its way
    means = class_hop_means(small_graph.adjacency, rows_of, *arguments, budget)
    np.testing.assert_allclose(means, expected, rtol=1e-5, atol=1e-6)
    assert len(reads) == 4 // hops_at_once


def test_classes_that_travel_one_by_one_have_the_same_means(
    small_graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.asarray(small_graph.features)
    arguments = (small_graph.adjacency, lambda rows: x[rows], small_graph.labels, np.arange(60), 3, 0.2)
    together = class_hop_means(*arguments)
    monkeypatch.setattr(hops_module, "choose_propagator", lambda num_bytes: Propagator(1))
    np.testing.assert_allclose(class_hop_means(*arguments), together, rtol=1e-5, atol=1e-6)
