"""Hop features from a file are those from memory, bit by bit, and leave nothing behind."""

import tempfile
from pathlib import Path

import numpy as np
import pytest

from degem import Graph
from degem.ops import hop_store
from degem.ops.hop_store import HopStore
from degem.ops.propagation import hop_features

ALL = 120 * 12 * 4 * 4  # bytes of three hops of the small graph


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop_store, "BLOCK", 50)


def store_of(graph: Graph, budget_bytes: float) -> HopStore:
    x = np.asarray(graph.features)
    return HopStore(
        graph.adjacency,
        lambda start, stop: x[start:stop],
        x.shape[1],
        3,
        self_weight=0.5,
        memory_budget=budget_bytes / 2**20,
    )


@pytest.mark.parametrize("budget", [ALL, ALL - 1, 5 * 120 * 4, 1], ids=["memory", "file", "column-blocks", "columns"])
def test_every_home_holds_the_same_bits(small_graph: Graph, budget: int) -> None:
    expected = hop_features(small_graph.adjacency, np.asarray(small_graph.features), 3, self_weight=0.5)
    with store_of(small_graph, budget) as store:
        assert store.on_disk == (budget < ALL)
        np.testing.assert_array_equal(store.hops, expected)
        nodes = np.array([7, 3, 119, 3])
        np.testing.assert_array_equal(store.rows(nodes), expected[:, nodes])
        for start, block in store.blocks(33):
            np.testing.assert_array_equal(block, expected[:, start : start + 33])


def test_an_interrupted_run_leaves_no_file(small_graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt), store_of(small_graph, 1):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
