"""The benchmarks of size run from a generated graph to the written page. No time is asserted."""

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import batches
import measure
import scale
import scale_page
import speed


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
    fit = speed.row("fit", "cora", 1.0, 60.0, "transcription", "feature")
    measure.write([fit, speed.row("sample", "cora", 1.0, 6.0, "autograd")], "speed", key=["dataset"])
    rival = {"dataset": "cora", "kind": "label", "method": "msp", "seconds": 1.0, "degem_seconds": 2.0, "ratio": 2.0}
    measure.write([rival], "fit-times", key=["dataset"])
    seeds = pd.DataFrame({"dataset": "cora", "shift": "label", "batch": [90.0, 92.0], "whole": [91.0, 91.0]})
    measure.write(batches.summary(seeds), "batches", key=["dataset"])
    harness = {"command": "degem bench run", "workers": 1, "fits": 2, "wall_seconds": 10.0}
    measure.write([harness | {"fit_and_score_seconds": 9.8, "added_percent": 2.0}], "harness", key=["command"])
    monkeypatch.setattr(scale_page, "PAGE", tmp_path / "scale.md")
    scale_page.main()
    text = (tmp_path / "scale.md").read_text(encoding="utf-8")
    assert "| generated | 1,000 |" in text
    assert "hours to fit" in text
    assert "| time of a fit, against MSP's and GNNSafe's | ≤ 2× | 2× (cora label msp) | so far; chameleon not" in text
    assert (tmp_path / "scale.png").stat().st_size > 1000


def test_rows_measured_again_replace_the_old_ones(results: Path) -> None:
    measure.write([{"dataset": name, "seconds": 1.0} for name in ("cora", "actor")], "some", key=["dataset"])
    measure.write([{"dataset": "cora", "seconds": 2.0}], "some", key=["dataset"])
    table = pd.read_csv(results / "some.csv")
    assert dict(zip(table["dataset"], table["seconds"], strict=True)) == {"actor": 1.0, "cora": 2.0}
    assert {"machine", "threads", "busy_before", "torch"} <= set(table.columns)


def test_the_summary_over_seeds() -> None:
    runs = pd.DataFrame({"dataset": "cora", "shift": "label", "batch": [90.0, 92.0], "whole": [91.0, 91.0]})
    (row,) = batches.summary(runs)
    assert (row["batch_mean"], row["whole_mean"], row["difference"], row["seeds"]) == (91.0, 91.0, 0.0, 2)
    assert row["standard_error"] == pytest.approx(1.0)
