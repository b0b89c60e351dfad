"""The study of left-out classes: who is OOD, and a page that says what its rows say."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from degem import Graph

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import left_out_classes
import measure


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_the_class_that_is_left_out_is_ood_and_the_others_are_not(left_out: int) -> None:
    labels = np.repeat([0, 1, 2, -1], 30)
    graph = Graph.from_arrays(features=np.eye(120, 4, dtype=np.float32), edges=np.empty((0, 2)), labels=labels)
    scenario = left_out_classes.leave_out(graph, left_out, seed=0)
    np.testing.assert_array_equal(scenario.ood["label"].nodes, np.flatnonzero(labels == left_out))
    train = np.flatnonzero(scenario.train_graph.masks["train"])
    assert set(labels[train]) == {0, 1, 2} - {left_out}
    assert (scenario.train_graph.labels[labels == left_out] == -1).all()
    known = scenario.train_graph.labels >= 0
    assert len(set(zip(labels[known], scenario.train_graph.labels[known], strict=True))) == 2  # one to one


def test_the_page_has_each_class_the_mean_and_the_lowest() -> None:
    row = {"dataset": "cora", "method": "degem", "seed": 0, "acc": 80.0}
    values = [(90.0, 7), (40.0, 1)]
    frame = pd.DataFrame([{**row, "class": at, "auroc": auroc, "nodes": n} for at, (auroc, n) in enumerate(values)])
    assert "| cora | nodes | 7 | 1 |  |  |\n| cora | degem | 90.0 | 40.0 | 65.0 | 40.0 |" in left_out_classes.page(
        frame
    )


def test_a_run_of_one_dataset_keeps_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    monkeypatch.setattr(left_out_classes, "PAGE", tmp_path / "page.md")
    row = {"class": 0, "acc": 80.0, "nodes": 5}
    named = [
        row | {"dataset": dataset, "method": method, "seed": seed, "auroc": 90.0}
        for dataset in ("actor", "cora")
        for method in ("degem", "msp")
        for seed in (0, 1)
    ]
    left_out_classes.store(named)
    left_out_classes.store([row | {"dataset": "cora", "method": "degem", "seed": 0, "auroc": 70.0}])
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    for start in ("| actor | degem | 90.0", "| actor | msp | 90.0", "| cora | degem | 70.0", "| cora | msp | 90.0"):
        assert start in text
    assert "mean over seeds\n(1–2)" in text
