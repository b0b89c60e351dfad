import numpy as np

from degem import Graph
from degem.shifts.manipulation import _pairs_within, block_model, structure_shift


def test_every_pair_within_a_block_can_be_reached_once() -> None:
    for size in (2, 3, 10, 301):
        row, column = _pairs_within(size, 1.0, np.random.default_rng(0))
        assert (row < column).all()
        assert len(set(zip(row.tolist(), column.tolist(), strict=True))) == size * (size - 1) // 2
        assert row.min() == 0
        assert column.max() == size - 1


def test_densities_are_those_asked_for() -> None:
    adjacency = block_model(np.array([400, 600]), 0.06, 0.02, np.random.default_rng(0)).toarray()
    assert (adjacency == adjacency.T).all()
    assert not adjacency.diagonal().any()
    within = adjacency[:400, :400].sum() / (400 * 399)
    between = adjacency[:400, 400:].mean()
    assert abs(within - 0.06) < 0.002  # about five standard deviations
    assert abs(between - 0.02) < 0.002


def test_only_the_edges_change(small_graph: Graph) -> None:
    shifted = structure_shift(small_graph, np.random.default_rng(0))
    assert shifted.features is small_graph.features or np.array_equal(shifted.features, small_graph.features)
    assert (shifted.adjacency != small_graph.adjacency).nnz > 0
    expected = small_graph.num_edges * (1.5 / 3 + 0.5 * 2 / 3)
    assert abs(shifted.num_edges - expected) < 6 * np.sqrt(expected)


def test_a_stored_count_sets_the_density(small_graph: Graph) -> None:
    shifted = structure_shift(small_graph, np.random.default_rng(0), stored_entries=small_graph.num_edges)
    expected = small_graph.num_edges / 2 * (1.5 / 3 + 0.5 * 2 / 3)
    assert abs(shifted.num_edges - expected) < 6 * np.sqrt(expected)
