from __future__ import annotations

import json

import pytest

from degem import DeGEM

QUICK = ["--set", "num_epochs=2", "--set", "latent_dim=8"]


def test_fit_from_a_folder(run, folder, tmp_path):
    out = tmp_path / "model"
    outcome = run(
        "fit", folder, "--out", out, "--label-column", "topic", "--keep-columns", "strange", *QUICK,
        "--set", "langevin.num_steps=3", "--seed", 5, "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    told = json.loads(outcome.out)
    assert told | {"seconds": 0} == {
        "model": str(out), "method": "degem", "nodes": 120, "training_nodes": 72, "calibration_nodes": 8,
        "classes": 2, "seconds": 0,
    }  # fmt: skip
    loaded = DeGEM.load(out)
    assert (loaded.num_epochs, loaded.langevin.num_steps, loaded.seed) == (2, 3, 5)
    assert loaded.feature_names_ == (*(f"x{column}" for column in range(12)), "(unseen)")


def test_notices_are_one_line_each(run, folder, tmp_path):
    edges = folder / "edges.csv"
    edges.write_text(edges.read_text() + "n0,n0\n")
    columns = ["--label-column", "topic", "--keep-columns", "strange"]
    outcome = run("fit", folder, "--out", tmp_path / "m", *columns, *QUICK)
    assert "degem: note: 1 self-loops dropped" in outcome.err
    assert all(line.startswith("degem: note: ") for line in outcome.err.splitlines())
    assert "fitted on 72 nodes" in outcome.out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--set", "num_hop=3"], "did you mean 'num_hops'?"),
        (["--set", "num_hops=0"], "greater than or equal to 1"),
        (["--set", "num_hops"], "write it as name=value"),
        (["--method", "magic"], "there is no method 'magic': choose from"),
        (["--device", "quantum"], "choose cpu, cuda or cuda:N"),
        (["--label-column", "nothing"], "'nothing'"),
        (["--method", "oe", "--exposure", "topic", "--label-column", "topic"], "topic"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(run, folder, tmp_path, words, reason):
    outcome = run("fit", folder, "--out", tmp_path / "model", *words)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert reason in outcome.err
    assert not (tmp_path / "model").exists()


def test_a_foreign_target_is_refused_before_the_work(run, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    outcome = run("fit", "no-such-graph/", "--out", tmp_path / "precious")
    assert outcome.code == 2
    assert "is not a model folder" in outcome.err


def test_a_model_is_overwritten_only_by_force(run, folder, tmp_path):
    words = ["fit", folder, "--out", tmp_path / "model", "--feature-columns", "x0,x1", *QUICK]
    assert run(*words).code == 0
    outcome = run(*words, "--seed", 1)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert f"{tmp_path / 'model'} holds a model" in outcome.err
    assert DeGEM.load(tmp_path / "model").seed == 0
    assert run(*words, "--seed", 1, "--force").code == 0
    assert DeGEM.load(tmp_path / "model").seed == 1


def test_exposure_comes_from_a_column(run, folder, tmp_path):
    columns = ["--label-column", "topic", "--exposure", "strange"]
    outcome = run("fit", folder, "--out", tmp_path / "m", "--method", "oe", *columns, "--set", "num_epochs=2", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["method"] == "oe"


def test_a_dry_run_tells_the_cost_and_fits_nothing(run, folder, tmp_path):
    words = ["--label-column", "topic", "--keep-columns", "strange", "--dry-run"]
    outcome = run("fit", folder, *words, "--json")
    assert outcome.code == 0, outcome.err
    told = json.loads(outcome.out)
    assert told["nodes"] == 120
    assert told["memory_mib"] > 0
    assert told["disk_mib"] == 0
    assert told["columns"]["x11"].startswith("number: centre ")
    assert "x11: number: centre " in run("fit", folder, *words).out
    outcome = run("fit", folder, "--out", tmp_path / "model", *words, "--memory-budget", 1, "--set", "num_hops=50")
    assert "MiB of temporary files" in outcome.out
    outcome = run("fit", folder, *words, "--method", "msp")
    assert (outcome.code, "cannot tell what it takes" in outcome.err) == (2, True)
    assert not (tmp_path / "model").exists()


def test_a_fit_without_a_target_is_refused_before_the_work(run):
    outcome = run("fit", "no-such-graph/")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "--out MODEL is missing" in outcome.err


def test_what_cannot_fit_is_refused_early_with_the_numbers(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("degem.detectors.cost.available_mib", lambda: 100.0)
    words = ["--label-column", "topic", "--keep-columns", "strange"]
    for dry in ([], ["--dry-run"]):
        outcome = run("fit", folder, "--out", tmp_path / "model", *words, *dry)
        assert outcome.code == 2
        assert "MiB of memory and 100 MiB are free" in outcome.err
    assert not (tmp_path / "model").exists()
