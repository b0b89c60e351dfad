from __future__ import annotations

import json

from degem import DeGEM
from degem.detectors.logits import MSP


def test_info(run, model):
    told = json.loads(run("info", model, "--json").out)
    assert told["method"] == "degem"
    assert told["parameters"]["num_epochs"] == 2
    assert told["parameters"]["langevin"]["num_steps"] == DeGEM().langevin.num_steps
    assert (told["features"], told["training_nodes"], told["calibration_nodes"]) == (12, 108, 12)
    shown = run("info", model).out
    assert "num_epochs" in shown
    assert "0, 1, 2" in shown


def test_names_are_shown_as_they_are_without_control_characters(run, small_graph, tmp_path):
    graph = small_graph.replace(class_names=("[red]a[/bold]", "b\x1b[2J", "c"))
    MSP(num_epochs=1).fit(graph).save(tmp_path / "model")
    outcome = run("info", tmp_path / "model")
    assert outcome.code == 0, outcome.err
    assert r"[red]a[/bold], b\x1b[2J, c" in outcome.out


def test_no_model(run, tmp_path):
    outcome = run("info", tmp_path)
    assert outcome.code == 2
    assert "is not a model folder" in outcome.err
