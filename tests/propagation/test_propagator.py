"""Hops in memory and out of core are the same bits, as a whole and of a sample, and leave nothing behind."""

import tempfile
import weakref
from pathlib import Path

import numpy as np
import pytest

import degem.propagation
from degem import Graph
from degem.ops.neighbours import average
from degem.propagation import Columns, Propagator, choose_propagator
from degem.training import Progress

HOPS = (0, 1, 4)
PROPAGATORS = {
    "memory": Propagator(),
    "all-columns": Propagator(12 * 8 * 120),
    "five-columns": Propagator(5 * 8 * 120),
    "one-column": Propagator(1),
}
everywhere = pytest.mark.parametrize("propagator", PROPAGATORS.values(), ids=PROPAGATORS)


@pytest.fixture
def columns(small_graph: Graph) -> Columns:
    x = np.asarray(small_graph.features)
    return Columns.by_block(12, lambda rows, columns: x[rows, columns])


@pytest.fixture
def expected(small_graph: Graph) -> np.ndarray:
    return transcribed(small_graph)


def transcribed(graph: Graph, order: slice | np.ndarray = slice(None)) -> np.ndarray:
    hops = [np.asarray(graph.features)[order]]
    for _ in range(4):
        hops.append(average(graph.adjacency, hops[-1], self_weight=0.0))
    return np.stack([hops[hop] for hop in HOPS])


@everywhere
def test_kept_hops_are_those_of_the_transcription(
    small_graph: Graph, columns: Columns, expected: np.ndarray, propagator: Propagator
) -> None:
    sizes: list[int] = []
    with propagator.keep(small_graph.adjacency, columns, HOPS) as kept:
        for rows in (slice(0, 33), slice(99, 120)):
            np.testing.assert_array_equal(kept.rows(rows), expected[:, rows])
        blocks = propagator.map_rows(lambda hops, own: (hops[2], own), kept, small_graph.degrees, block_rows=33)
        for hops, own in blocks:
            sizes.append(len(own))
            np.testing.assert_array_equal(hops, expected[2, sum(sizes[:-1]) : sum(sizes)])
        assert sizes == [33, 33, 33, 21]


@everywhere
def test_a_sample_has_the_rows_of_the_whole(
    small_graph: Graph, columns: Columns, expected: np.ndarray, propagator: Propagator
) -> None:
    nodes, order = np.array([7, 3, 119, 3]), np.random.default_rng(0).permutation(120)
    np.testing.assert_array_equal(propagator.sample(small_graph.adjacency, columns, HOPS, nodes), expected[:, nodes])
    permuted = propagator.sample(small_graph.adjacency, columns.permuted(order), HOPS, nodes)
    np.testing.assert_array_equal(permuted, transcribed(small_graph, order)[:, nodes])


@everywhere
def test_blocks_hold_their_values_while_the_next_hop_is_made(
    small_graph: Graph, columns: Columns, propagator: Propagator
) -> None:
    before = None
    for block in propagator.hops(small_graph.adjacency, columns, 4, self_weight=0.5, weight=0.7):
        if block.hop:
            step = average(small_graph.adjacency, before, self_weight=0.5, weight=0.7)
            np.testing.assert_array_equal(block.values, step)
        before = block.values


def test_columns_are_made_in_blocks_of_rows(small_graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("degem.propagation.propagator.BLOCK", 50)
    asked = []
    x = np.asarray(small_graph.features)

    def block(rows: slice, columns: slice) -> np.ndarray:
        asked.append((rows.start, rows.stop))
        return x[rows, columns]

    out = np.empty((120, 2), dtype=np.float32)
    Columns.by_block(12, block).write(slice(3, 5), out)
    np.testing.assert_array_equal(out, x[:, 3:5])
    assert asked == [(0, 50), (50, 100), (100, 120)]


def test_an_interrupted_run_leaves_no_file(
    small_graph: Graph, columns: Columns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt), Propagator(1).keep(small_graph.adjacency, columns, HOPS):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_closed_hops_hold_no_memory(small_graph: Graph, columns: Columns) -> None:
    with Propagator().keep(small_graph.adjacency, columns, HOPS) as kept:
        block = kept.rows(slice(0, 120))
        whole = weakref.ref(block.base)
    del block
    assert whole() is None


def test_every_hop_is_reported(small_graph: Graph, columns: Columns) -> None:
    heard: list[Progress] = []
    Propagator(5 * 8 * 120, heard.append).keep(small_graph.adjacency, columns, HOPS).close()
    assert {progress.phase for progress in heard} == {"propagate"}
    hops = [(progress.done, progress.total, progress.rows) for progress in heard]
    assert [done for done, *_ in hops] == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12]  # three strips of columns
    assert hops[-1] == (12, 12, 12 * 120)


def test_the_machine_is_asked_only_where_its_memory_may_not_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(degem.propagation, "default_budget", lambda: 100.0)
    assert not choose_propagator(100 << 20).out_of_core
    assert choose_propagator((100 << 20) + 1).out_of_core
    assert choose_propagator((1 << 20) + 1, memory_budget=1.0).out_of_core
    monkeypatch.setattr(degem.propagation, "default_budget", lambda: pytest.fail("asked"))
    assert not choose_propagator(degem.propagation.LITTLE).out_of_core


def test_columns_that_travel_together_fill_whole_lines_of_memory_where_the_budget_allows() -> None:
    assert Propagator(8 * 120 * 50).columns_at_once(120, 128) == 48  # not 43, as three even parts would be
    assert Propagator(8 * 120 * 47).columns_at_once(120, 128) == 43
