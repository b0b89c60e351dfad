"""Hop features from a file or of a sample are those from memory, bit by bit, and leave nothing behind."""

import dataclasses
import tempfile
import weakref
from pathlib import Path

import numpy as np
import pytest

from degem import Graph
from degem.ops import hop_store
from degem.ops.hop_store import HopSource, HopStore
from degem.ops.propagation import hop_features, root_degrees
from degem.training import Progress

HOPS = (0, 1, 4)
ALL = 4 * 3 * 120 * 12  # bytes of the wanted hops of the small graph
BUDGETS = {"memory": ALL, "file": ALL - 1, "five-columns": 5 * 8 * 120, "one-column": 1}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop_store, "BLOCK", 50)


def source_of(graph: Graph, budget_bytes: float) -> HopSource:
    x = np.asarray(graph.features)
    return HopSource(
        graph.adjacency, lambda rows, columns: x[rows, columns], 12, HOPS, 0.5, memory_budget=budget_bytes / 2**20
    )


def expected_hops(graph: Graph, order: np.ndarray | slice = slice(None)) -> np.ndarray:
    hops = hop_features(graph.adjacency, np.asarray(graph.features)[order], 4, self_weight=0.5)[list(HOPS)]
    return hops / root_degrees(graph.adjacency)


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_every_home_holds_the_same_bits(small_graph: Graph, budget: int) -> None:
    expected = source_of(small_graph, ALL).sample(np.arange(120))
    np.testing.assert_allclose(expected, expected_hops(small_graph), rtol=1e-5, atol=1e-6)
    with HopStore(source_of(small_graph, budget), np.array([7, 3, 119])) as store:
        assert store.on_disk == (budget < ALL)
        np.testing.assert_array_equal(store.sample, expected[:, [7, 3, 119]])
        starts = []
        for start, block in store.blocks(33):
            np.testing.assert_array_equal(block, expected[:, start : start + 33])
            starts.append(start)
        assert starts == [0, 33, 66, 99]


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_a_sample_has_the_rows_of_the_whole(small_graph: Graph, budget: int) -> None:
    source, nodes = source_of(small_graph, budget), np.array([7, 3, 119, 3])
    close = {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(source.sample(nodes), expected_hops(small_graph)[:, nodes], **close)
    order = np.random.default_rng(0).permutation(120)
    np.testing.assert_allclose(source.sample(nodes, order), expected_hops(small_graph, order)[:, nodes], **close)


def test_an_interrupted_run_leaves_no_file(small_graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt), HopStore(source_of(small_graph, 1)):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_closed_store_holds_no_memory(small_graph: Graph) -> None:
    with HopStore(source_of(small_graph, ALL)) as store:
        (_, block), *_ = store.blocks(120)
        whole = weakref.ref(block.base)
    del block
    assert whole() is None


def test_every_hop_is_reported(small_graph: Graph) -> None:
    heard: list[Progress] = []
    source = dataclasses.replace(source_of(small_graph, BUDGETS["five-columns"]), on_progress=heard.append)
    HopStore(source).close()
    assert {progress.phase for progress in heard} == {"propagate"}
    hops = [(progress.done, progress.total, progress.rows) for progress in heard]
    assert [done for done, *_ in hops] == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12]  # three parts of the columns
    assert hops[-1] == (12, 12, 12 * 120)


def test_the_machine_is_asked_only_where_its_memory_may_not_suffice(
    small_graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hop_store, "default_budget", lambda: 100.0)
    unbounded, bounded = (dataclasses.replace(source_of(small_graph, 1), memory_budget=mib) for mib in (None, 1.0))
    assert unbounded.fits(100 << 20)
    assert not unbounded.fits((100 << 20) + 1)
    assert not bounded.fits((1 << 20) + 1)
    monkeypatch.setattr(hop_store, "default_budget", lambda: pytest.fail("asked"))
    assert unbounded.fits(hop_store.LITTLE)


def test_columns_that_travel_together_fill_whole_lines_of_memory_where_the_budget_allows(small_graph: Graph) -> None:
    wide = dataclasses.replace(source_of(small_graph, 8 * 120 * 50), width=128)
    assert wide.columns_at_once == 48  # not 43, as three even parts would be
    assert dataclasses.replace(wide, memory_budget=8 * 120 * 47 / 2**20).columns_at_once == 43
