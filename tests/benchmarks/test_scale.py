"""The benchmarks of size run from a generated graph to the written page. No time is asserted."""

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import measure
import scale


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(measure, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


def test_from_generated_graphs_to_the_page(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = scale.run("1000", tmp_path / "graphs")
    spent = sum(row[f"fit_{part}_seconds"] for part in scale.PARTS)
    assert spent == pytest.approx(row["fit_seconds"], rel=0.3)
    assert all(row[f"{name}_seconds"] > 0 for name in ("write", "read", "fit_propagate", "fit_train", "score"))
    assert row["fit_peak_mib"] > 100
    rows = [row, row | {"nodes": 2000, "fit_seconds": 2 * row["fit_seconds"]}]
    measure.write(rows, "scale", key=["graph", "nodes"])
    monkeypatch.setattr(scale, "PAGE", tmp_path / "scale.md")
    scale.write_page()
    text = (tmp_path / "scale.md").read_text(encoding="utf-8")
    assert "| generated | 1,000 |" in text
    assert "power 1.00 for a fit" in text


def test_rows_measured_again_replace_the_old_ones(results: Path) -> None:
    measure.write([{"dataset": name, "seconds": 1.0} for name in ("cora", "actor")], "some", key=["dataset"])
    measure.write([{"dataset": "cora", "seconds": 2.0}], "some", key=["dataset"])
    table = pd.read_csv(results / "some.csv")
    assert dict(zip(table["dataset"], table["seconds"], strict=True)) == {"actor": 1.0, "cora": 2.0}
    assert {"machine", "threads", "busy_before", "torch"} <= set(table.columns)
