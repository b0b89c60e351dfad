"""Hop features of a few nodes, and of the mean node of a class, equal those of the whole graph."""

import numpy as np
import pytest
import scipy.sparse as sp

from degem import Graph
from degem.ops.hop_rows import class_hop_means, hop_rows
from degem.ops.propagation import hop_features, smooth_over_neighbours


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_equal_full_propagation(small_graph: Graph, sparse: bool) -> None:
    x = np.asarray(small_graph.features)
    nodes = np.array([3, 77])
    rows = hop_rows(small_graph.adjacency, sp.csr_array(x) if sparse else x, nodes, 3, 0.5)
    np.testing.assert_allclose(
        np.stack(rows), hop_features(small_graph.adjacency, x, 3, self_weight=0.5)[:, nodes], atol=1e-4
    )


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


def test_smoothing_equals_the_dense_average(small_graph: Graph) -> None:
    values = np.random.default_rng(0).standard_normal((120, 2)).astype(np.float32)
    average = small_graph.adjacency.toarray() / np.maximum(small_graph.degrees, 1)[:, None]
    expected = values.astype(np.float64)
    for _ in range(3):
        expected = 0.4 * expected + 0.6 * np.where(small_graph.degrees[:, None] > 0, average @ expected, expected)
    smooth = smooth_over_neighbours(small_graph.adjacency, values, weight=0.6, num_steps=3)
    np.testing.assert_allclose(smooth, expected, atol=1e-4)
    np.testing.assert_array_equal(
        smooth_over_neighbours(small_graph.adjacency, values, weight=0.0, num_steps=3), values
    )
