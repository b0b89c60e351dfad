"""The service's benchmark runs from a graph to the written page. No time is asserted."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest

from degem import DeGEM, Graph

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import measure
import serve_page

import serve

OPTIONS = argparse.Namespace(batches=2, seconds=1.0)


@pytest.fixture
def bench(small_graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> serve.Bench:
    monkeypatch.setattr(serve, "load_dataset", lambda _: small_graph)
    monkeypatch.setattr(serve, "DeGEM", lambda: DeGEM(num_epochs=2, latent_dim=16, num_hops=3))
    monkeypatch.setattr(measure, "RESULTS", tmp_path / "results")
    return serve.Bench("planted", tmp_path / "models")


def test_refreshes_are_measured_and_written(
    bench: serve.Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = list(serve.refresh(bench, OPTIONS))
    assert [row["tolerance"] for row in rows] == list(serve.TOLERANCES)
    assert rows[0]["score_off_max"] == 0
    assert rows[0]["rows"] >= rows[-1]["rows"] > 0
    assert all(row["rows"] <= row["rows_within_hops"] <= row["nodes"] for row in rows)
    page = tmp_path / "serve.md"
    page.write_text(f"before\n{serve_page.BEGIN}old\n{serve_page.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(serve_page, "PAGE", page)
    for row in rows:
        serve_page.write([{"dataset": "planted"} | row], "refresh")
    serve_page.write_page()
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert text.count("| planted |") == len(serve.TOLERANCES)


def test_arrivals_are_copies_of_nodes(small_graph: Graph) -> None:
    arrivals = serve.Arrivals(small_graph)
    for _ in range(20):
        first, *edges = arrivals.node()
        near = {edge["target"] for edge in edges}
        copied = np.flatnonzero(np.abs(np.asarray(small_graph.features) - first["features"]).max(axis=1) < 1e-5)
        assert near <= {str(row) for row in small_graph.adjacency[copied].indices}
        assert len(arrivals.events()) == 10
