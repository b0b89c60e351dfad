"""What the benchmarks compare computes the same; their rows have the documented keys. No time is asserted."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from degem import DeGEM, Graph
from degem.ops.neighbours import average

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import measure
import products
import scale
import speed


def test_the_other_kernels_compute_the_same_hop(small_graph: Graph) -> None:
    x = np.asarray(small_graph.features)
    expected = average(small_graph.adjacency, x, self_weight=0.0)
    out = np.empty_like(x)
    matrix = speed.transition_matrix(small_graph.adjacency)
    speed._plain_product(matrix.indptr, matrix.indices, matrix.data, x, out)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-6)
    for name, kernel in speed.other_kernels(small_graph.adjacency, x).items():
        if name != "numba":  # it writes into an array of its own
            np.testing.assert_allclose(np.asarray(torch.as_tensor(kernel())), expected, rtol=1e-4, atol=1e-6)


def test_rows_have_the_documented_keys() -> None:
    row = speed.row("fit", "cora", 2.0, 8.0, "transcription", "feature")
    documented = "what dataset seconds baseline_seconds speedup peak_mib baseline_peak_mib auroc baseline_auroc"
    assert list(row)[:9] == documented.split()
    assert row["speedup"] == 4.0


def test_bare_products_run_on_a_fitted_detector(small_graph: Graph) -> None:
    detector = DeGEM(num_epochs=2, num_head_steps=2).fit(small_graph)
    products.bare_products(detector, small_graph)()


def test_the_exponent_of_a_line_is_one() -> None:
    rows = [{"graph": "generated", "nodes": nodes, "fit_seconds": 3e-5 * nodes} for nodes in (1e4, 1e5, 1e6)]
    rows.append({"graph": "arxiv", "nodes": 5e5, "fit_seconds": 1e6})
    assert scale.exponent(rows, "fit") == pytest.approx(1.0)


def test_functions_are_timed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "TURN", 0.0)
    calls: list[str] = []
    times = measure.best_of(lambda: calls.append("ours"), lambda: calls.append("theirs"), turns=2)
    assert calls == 2 * ["ours", "ours", "theirs", "theirs"]
    assert all(seconds >= 0 for seconds in times)
    assert len(times) == 2


def test_memory_that_a_block_takes_is_seen() -> None:
    with measure.measured() as taken:
        block = np.ones(1 << 24)
    assert taken.seconds > 0
    assert taken.peak_mib == pytest.approx(block.nbytes / 2**20, rel=0.2)
