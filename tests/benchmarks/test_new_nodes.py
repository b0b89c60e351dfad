"""The study of absent nodes: what is taken away, and a page that keeps what was not measured again."""

import sys
from pathlib import Path

import numpy as np
import pytest

from degem import Graph

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import measure
import new_nodes


def test_training_and_validation_nodes_stay() -> None:
    masks = {"train": np.arange(40) < 10, "val": (np.arange(40) >= 10) & (np.arange(40) < 20)}
    graph = Graph.from_arrays(features=np.eye(40), edges=[(i, (i + 1) % 40) for i in range(40)], masks=masks)
    thinned = new_nodes.thinned(graph, 0.5, np.random.default_rng(0))
    assert thinned.num_nodes == 30
    assert (thinned.masks["train"].sum(), thinned.masks["val"].sum()) == (10, 10)


def test_a_run_of_one_dataset_keeps_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    monkeypatch.setattr(new_nodes, "PAGE", tmp_path / "page.md")
    row = {"shift": "label", "acc": 80.0, "edges": 0.5, "absent": 0.25}
    named = [
        row | {"dataset": dataset, "seed": seed, "auroc": 90.0} for dataset in ("actor", "cora") for seed in (0, 1)
    ]
    new_nodes.store(named)
    new_nodes.store([row | {"dataset": "cora", "seed": 0, "auroc": 70.0}])
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| actor | label | 90.0 | 50% |\n| cora | label | 70.0 | 50% |" in text
    assert "mean over seeds (1–2)" in text
