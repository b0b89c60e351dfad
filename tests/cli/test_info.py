from __future__ import annotations

import json

from degem import DeGEM


def test_info(run, model):
    told = json.loads(run("info", model, "--json").out)
    assert told["method"] == "degem"
    assert told["parameters"]["num_epochs"] == 2
    assert told["parameters"]["langevin"]["num_steps"] == DeGEM().langevin.num_steps
    assert (told["features"], told["training_nodes"], told["calibration_nodes"]) == (12, 108, 12)
    shown = run("info", model).out
    assert "num_epochs" in shown
    assert "0, 1, 2" in shown


def test_no_model(run, tmp_path):
    outcome = run("info", tmp_path)
    assert outcome.code == 2
    assert "is not a model folder" in outcome.err
