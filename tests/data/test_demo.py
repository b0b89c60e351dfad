from __future__ import annotations

import numpy as np
import pytest

from degem.data.demo import digits_graph, heterophilic_graph


@pytest.mark.parametrize("make", [digits_graph, heterophilic_graph])
def test_only_known_classes_are_labelled(make, recwarn):
    graph = make()
    is_ood = graph.columns["is_ood"]
    np.testing.assert_array_equal(graph.labelled, ~is_ood)
    np.testing.assert_array_equal(sum(mask.astype(int) for mask in graph.masks.values()), ~is_ood)
    np.testing.assert_array_equal(graph.labels[~is_ood], graph.columns["true_class"][~is_ood])
    assert graph.columns["true_class"][is_ood].min() > graph.labels.max()
    assert not recwarn.list


def test_digits():
    graph = digits_graph()
    assert set(graph.columns["true_class"][graph.columns["is_ood"]]) == {7, 8, 9}
    assert graph.degrees.min() >= 10
    assert graph.homophily() > 0.9


def test_heterophily_is_as_asked():
    for seed, homophily in enumerate((0.1, 0.5)):
        graph = heterophilic_graph(homophily=homophily, seed=seed)
        assert graph.replace(labels=graph.columns["true_class"]).homophily() == pytest.approx(homophily, abs=0.02)


def test_a_seed_is_a_graph():
    first, again, other = (heterophilic_graph(num_nodes=70, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.features, again.features)
    assert (first.adjacency != again.adjacency).nnz == 0
    assert not np.array_equal(first.features, other.features)
