from __future__ import annotations

import json

import pandas as pd

from degem.training import train


def test_demo_leaves_all_there_is_to_see(run, tmp_path, monkeypatch):
    monkeypatch.setattr("degem.detectors.backbone.train", lambda step, _, **options: train(step, 1, **options))
    outcome = run("demo", "--out", tmp_path / "demo")
    assert outcome.code == 0, outcome.err
    assert "AUROC" in outcome.out
    assert all(word in outcome.out for word in ("heterophilic", "degem", "msp", "energy", "gnnsafe"))
    for graph, nodes in {"digits": 1354, "heterophilic": 1147}.items():
        folder = tmp_path / "demo" / graph
        assert len(pd.read_parquet(folder / "scores.parquet")) == nodes
        assert "<html" in (folder / "report.html").read_text()[:500]
        told = run("evaluate", folder / "model", folder / "after.npz", "--ood", "is_ood", "--json")
        assert json.loads(told.out)["ood_nodes"] > 70
