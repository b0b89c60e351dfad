"""Hops kept up to date while the graph changes: the same as a walk over the graph as it is now."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.propagation import Columns, Propagator
from degem.propagation.changing import ChangingHops, HopsView

NUM_HOPS, WIDTH = 4, 3


def _adjacency(edges: set[tuple[int, int]], num_nodes: int) -> sp.csr_array:
    matrix = np.zeros((num_nodes, num_nodes), dtype=np.float32)
    for source, target in edges:
        matrix[source, target] = matrix[target, source] = 1
    return sp.csr_array(matrix)


def _walked(adjacency: sp.csr_array, start: NDArray[np.float32], self_weight: float, weight: float) -> NDArray:
    blocks = Propagator().hops(adjacency, Columns.of(start), NUM_HOPS, self_weight=self_weight, weight=weight)
    return np.stack([block.values.copy() for block in blocks])


def _changed_many_times(tolerance: float, self_weight: float, weight: float, seed: int):
    """The hops after each of some random changes, and those of a walk."""
    rng = np.random.default_rng(seed)
    num_nodes, edges = 60, {(int(a), int(b)) for a, b in np.sort(rng.integers(60, size=(90, 2))) if a != b}
    start = rng.standard_normal((num_nodes, WIDTH)).astype(np.float32)
    hops = ChangingHops(NUM_HOPS, WIDTH, self_weight=self_weight, weight=weight, tolerance=tolerance)
    everyone = np.arange(num_nodes)
    hops.update(_adjacency(edges, num_nodes), everyone, start, touched=everyone)
    for _ in range(30):
        gone = {edge for edge in edges if rng.random() < 0.02}
        new = {(int(a), int(b)) for a, b in np.sort(rng.integers(num_nodes + 1, size=(2, 2))) if a != b} - edges
        edges, num_nodes = (edges - gone) | new, num_nodes + 1
        moved = np.unique([num_nodes - 1, *rng.integers(num_nodes, size=2)])
        start = np.vstack([start, np.zeros((1, WIDTH), dtype=np.float32)])
        start[moved] = rng.standard_normal((len(moved), WIDTH))
        touched = np.unique([node for edge in gone | new for node in edge]).astype(np.int64)
        adjacency = _adjacency(edges, num_nodes)
        hops.update(adjacency, moved, start[moved], touched=touched)
        yield hops, _walked(adjacency, start, self_weight, weight), adjacency


@pytest.mark.parametrize(("self_weight", "weight"), [(0.0, 1.0), (0.6, 0.4)])
def test_rows_are_those_of_a_walk_over_the_graph_as_it_is_now(self_weight: float, weight: float) -> None:
    for hops, walked, _ in _changed_many_times(0.0, self_weight, weight, seed=1):
        np.testing.assert_allclose(hops.values, walked, rtol=1e-6, atol=1e-7)


def test_with_a_tolerance_rows_stay_within_the_stated_bound_and_fewer_are_computed() -> None:
    tolerance, exact = 0.05, 0
    for hops, walked, adjacency in _changed_many_times(tolerance, 0.0, 1.0, seed=2):
        bound = tolerance * np.linalg.norm(hops.values[0], axis=1)
        assert (np.linalg.norm(hops.values[0] - walked[0], axis=1) <= bound + 1e-6).all()
        for hop in range(1, NUM_HOPS + 1):
            around = adjacency @ bound / np.maximum(np.diff(adjacency.indptr), 1)
            bound = around + tolerance * np.linalg.norm(hops.values[hop], axis=1)
            assert (np.linalg.norm(hops.values[hop] - walked[hop], axis=1) <= bound + 1e-6).all()
    for exact_hops, _, _ in _changed_many_times(0.0, 0.0, 1.0, seed=2):
        exact = exact_hops.num_computed
    assert hops.num_computed < 0.98 * exact


@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_a_view_stays_as_it_was_while_rows_change_and_nodes_come(tolerance: float) -> None:
    kept: list[tuple[HopsView, NDArray]] = []
    for hops, _, _ in _changed_many_times(tolerance, 0.6, 0.4, seed=3):
        kept.append((hops.view(), hops.values.copy()))
    moved = [not np.array_equal(values, hops.values[:, : values.shape[1]]) for _, values in kept]
    assert sum(moved) == len(kept) - 1
    for view, values in kept:
        places = np.arange(values.shape[1])[::-1]
        for hop in range(NUM_HOPS + 1):
            np.testing.assert_array_equal(view.rows(hop, places), values[hop, places])


def test_what_changed_is_told_by_hop() -> None:
    path = sp.csr_array(sp.diags_array([np.ones(9), np.ones(9)], offsets=[-1, 1], dtype=np.float32))
    hops, everyone = ChangingHops(3, 1), np.arange(10)
    hops.update(path, everyone, np.ones((10, 1), np.float32), touched=everyone)
    changed = hops.update(path, np.array([0]), np.array([[5.0]], np.float32), touched=everyone[:0])
    assert [rows.tolist() for rows in changed] == [[0], [1], [0, 2], [1, 3]]


def test_a_row_that_overflows_is_kept() -> None:
    hops, both = ChangingHops(1, 2, tolerance=0.01), np.arange(2)
    pair = _adjacency({(0, 1)}, 2)
    hops.update(pair, both, np.ones((2, 2), dtype=np.float32), touched=both)
    hops.update(pair, both[:1], np.full((1, 2), 3e38, dtype=np.float32), touched=both[:0])
    np.testing.assert_array_equal(hops.values[1][1], np.full(2, 3e38, dtype=np.float32))
