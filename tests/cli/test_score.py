from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from degem import Detector, read_graph
from degem.calibration import OnlineFDR, conformal_p_values
from degem.cli.score import chance_of
from degem.data.archives import write_npz
from degem.schema import TableSchema

COLUMNS = ["node_id", "score", "p_value", "is_ood", "predicted_class", "class_probability"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_scores_are_those_of_python(run, model, folder, tmp_path, suffix):
    out = tmp_path / f"scores{suffix}"
    outcome = run("score", model, folder, "--out", out, "--alpha", 0.2, "--json")
    assert outcome.code == 0, outcome.err
    table = pd.read_csv(out) if suffix == ".csv" else pd.read_parquet(out)
    assert list(table.columns) == COLUMNS
    detector = Detector.load(model)
    names = detector.feature_names_
    graph = read_graph(folder, feature_columns=names, schema=TableSchema())  # the model's columns are as they are
    np.testing.assert_allclose(table["score"], detector.decision_function(graph), rtol=1e-12)
    np.testing.assert_array_equal(table["is_ood"], detector.predict(graph, alpha=0.2))
    np.testing.assert_array_equal(table["predicted_class"], detector.predict_class(graph))
    assert list(table["node_id"][:2]) == ["n0", "n1"]
    assert json.loads(outcome.out) == {"scores": str(out), "nodes": 120, "flagged": int(table["is_ood"].sum())}


def test_a_table_on_standard_output(run, model, folder, tmp_path):
    assert run("score", model, folder, "--out", tmp_path / "s.csv").code == 0
    outcome = run("score", model, folder, "--out", "-")
    assert (outcome.code, outcome.out) == (0, (tmp_path / "s.csv").read_text())
    assert "of 120 nodes flagged" in outcome.err
    outcome = run("score", model, folder, "--out", "-", "--json")
    assert (outcome.code, outcome.out) == (2, "")
    assert "both write to standard output" in outcome.err


def test_a_pipe_that_closes_early_is_no_error(model, folder):
    command = f"{sys.executable} -m degem score {model} {folder} --out - --quiet | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (",".join(COLUMNS) + "\n", "")


def test_one_pass_over_the_graph(run, model, folder, tmp_path, monkeypatch):
    kind = type(Detector.load(model))
    calls = []
    score = kind._score
    monkeypatch.setattr(kind, "_score", lambda self, graph: calls.append(1) or score(self, graph))
    assert run("score", model, folder, "--out", tmp_path / "s.csv").code == 0
    assert len(calls) == 1


def test_a_false_discovery_rate_instead(run, model, folder, tmp_path):
    outcome = run("score", model, folder, "--out", tmp_path / "s.csv", "--fdr", 0.9, "--by-degree")
    assert outcome.code == 0
    assert "at a false discovery rate of 0.9" in outcome.out


def test_an_unsupported_level_is_noted(run, model, folder, tmp_path):
    outcome = run("score", model, folder, "--out", tmp_path / "s.csv", "--alpha", 0.01)
    assert outcome.code == 0
    assert "degem: note: " in outcome.err
    assert "hold out at least 99" in outcome.err


def test_a_false_discovery_rate_that_flags_nothing_says_why(run, own_model, folder, grown, tmp_path):
    words = ["score", own_model, grown, "--out", tmp_path / "s.csv", "--new-since", folder]
    outcome = run(*words, "--fdr", 0.15)
    assert (outcome.code, outcome.out[:26]) == (0, "0 of 2 nodes flagged at a ")
    assert "8 calibration nodes give no p-value below 1/9 = 0.11" in outcome.err
    assert "flagged at 0.15/2 = 0.075: 13 calibration nodes would do" in outcome.err


def test_far_more_flags_than_promised_are_explained(run, own_model, folder, tmp_path):
    words = ["score", own_model, folder, "--out", tmp_path / "s.csv", "--alpha", 0.12]
    assert "by chance" not in run(*words).err
    nodes = pd.read_csv(folder / "nodes.csv")
    features = [column for column in nodes if column.startswith("x")]
    nodes[features] = nodes[features].to_numpy()[:, ::-1]
    nodes["id"] = "m" + nodes["id"]
    nodes.to_csv(folder / "nodes.csv", index=False)
    edges = pd.read_csv(folder / "edges.csv")
    ("m" + edges).to_csv(folder / "edges.csv", index=False)
    outcome = run(*words)
    assert outcome.code == 0
    assert "and --alpha 0.12 promises 12.0% of in-distribution ones" in outcome.err
    assert "degem compare" in outcome.err


@pytest.mark.parametrize("num_calibration", [19, 100])
def test_the_chance_of_as_many_flags_is_that_of_random_orders(num_calibration):
    rng = np.random.default_rng(0)
    counts = [
        int((conformal_p_values(scores[:num_calibration], scores[num_calibration:]) <= 0.05).sum())
        for scores in rng.random((4000, num_calibration + 30))
    ]
    for flagged in (1, 3, 6):
        assert abs(chance_of(flagged, 30, 0.05, num_calibration) - np.mean(np.array(counts) >= flagged)) < 0.02


@pytest.fixture
def grown(folder, tmp_path):
    """The folder after two nodes have arrived."""
    path = tmp_path / "grown"
    shutil.copytree(folder, path)
    nodes = pd.read_csv(path / "nodes.csv")
    pd.concat([nodes, nodes.iloc[:2].assign(id=["new1", "new2"], topic="")]).to_csv(path / "nodes.csv", index=False)
    with (path / "edges.csv").open("a") as file:
        file.write("new1,n0\nnew2,n1\n")
    return path


@pytest.fixture
def own_model(run, folder, tmp_path):
    words = ["--label-column", "topic", "--keep-columns", "strange", "--set", "num_epochs=1", "--set", "latent_dim=8"]
    assert run("fit", folder, "--out", tmp_path / "own", *words).code == 0
    return tmp_path / "own"


def ids_of(path):
    return list(pd.read_csv(path)["node_id"])


def test_new_nodes_alone_are_judged(run, own_model, folder, grown, tmp_path):
    out = tmp_path / "s.csv"
    for words in (["--new-since", folder], ["--new-since", own_model]):
        outcome = run("score", own_model, grown, "--out", out, *words)
        assert outcome.code == 0, outcome.err
        assert ids_of(out) == ["new1", "new2"]
    (tmp_path / "ids.txt").write_text("n5\n\nnew2\n")
    assert run("score", own_model, grown, "--out", out, "--nodes", tmp_path / "ids.txt").code == 0
    assert ids_of(out) == ["n5", "new2"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--nodes", "nowhere.txt"], "--nodes nowhere.txt cannot be read"),
        (["--nodes", "nowhere.txt", "--new-since", "x"], "keep one"),
        (["--online", "state.json"], "say which with --fdr"),
        (["--online", "state.json", "--fdr", "0.1"], "say which with --new-since or --nodes"),
        (["--alpha", 0.05, "--fdr", 0.1], "--alpha and --fdr are two ways"),
        (["--fdr", 0.1, "--alpha", 0.05], "--alpha and --fdr are two ways"),
    ],
)
def test_words_that_do_not_go_together(run, own_model, grown, tmp_path, words, reason):
    outcome = run("score", own_model, grown, "--out", tmp_path / "s.csv", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert reason in outcome.err


def test_new_nodes_in_a_folder_of_their_own_are_joined_to_the_graph(run, own_model, folder, grown, tmp_path):
    """What is scored is what would be if all were in one folder."""
    alone = tmp_path / "alone"
    alone.mkdir()
    for name, rows in (("nodes", 2), ("edges", 2)):
        pd.read_csv(grown / f"{name}.csv").iloc[-rows:].to_csv(alone / f"{name}.csv", index=False)
    columns = ["--label-column", "topic", "--keep-columns", "strange"]
    out, expected = tmp_path / "s.csv", tmp_path / "expected.csv"
    outcome = run("score", own_model, alone, "--onto", folder, "--out", out, *columns)
    assert outcome.code == 0, outcome.err
    assert "2 nodes flagged" in outcome.out.replace("of 2", "2")
    assert run("score", own_model, grown, "--new-since", folder, "--out", expected, *columns).code == 0
    pd.testing.assert_frame_equal(pd.read_csv(out), pd.read_csv(expected), rtol=1e-6)


@pytest.mark.parametrize(
    ("graph", "onto", "words", "reason"),
    [
        ("grown", "graph", [], "nodes.csv: row 1: the graph that the nodes arrive in has 'n0' already, and 119 more"),
        ("none.npz", "graph", [], "none.npz must be a folder"),
        ("grown", "graph", ["--new-since", "x"], "leave out --new-since and --nodes"),
    ],
)
def test_what_cannot_be_joined(run, own_model, grown, tmp_path, monkeypatch, graph, onto, words, reason):
    monkeypatch.chdir(tmp_path)
    outcome = run("score", own_model, graph, "--onto", onto, "--out", "s.csv", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert reason in outcome.err


def test_nothing_new_is_an_empty_table(run, own_model, grown, tmp_path):
    outcome = run("score", own_model, grown, "--out", tmp_path / "s.csv", "--new-since", grown)
    assert outcome.code == 0, outcome.err
    assert ids_of(tmp_path / "s.csv") == []


def test_a_stream_of_arrivals_has_one_bound(run, own_model, folder, grown, tmp_path):
    out, state = tmp_path / "s.csv", tmp_path / "stream.json"
    (tmp_path / "first.txt").write_text("new1\n")
    (tmp_path / "second.txt").write_text("new2\nn3\n")
    for name, seen in (("first", 1), ("second", 3)):
        words = ["--nodes", tmp_path / f"{name}.txt", "--fdr", 0.2, "--online", state]
        assert run("score", own_model, grown, "--out", out, *words).code == 0
        assert OnlineFDR.load(state).num_seen == seen
    words = ["--new-since", folder, "--fdr", 0.3, "--online", state]
    other = run("score", own_model, grown, "--out", out, *words)
    assert "was begun with fdr = 0.2" in other.err


def test_calibration_nodes_are_renewed_without_a_fit(run, own_model, folder, grown, tmp_path):
    (tmp_path / "ids.txt").write_text("new1\nnew2\n")
    outcome = run("calibrate", own_model, grown, "--nodes", tmp_path / "ids.txt", "--out", tmp_path / "renewed")
    assert outcome.code == 0, outcome.err
    renewed = Detector.load(tmp_path / "renewed")
    assert len(renewed.calibration_) == 2
    (tmp_path / "ids.txt").write_text("".join(f"n{row}\n" for row in range(60)))
    outcome = run("calibrate", own_model, grown, "--nodes", tmp_path / "ids.txt")
    assert outcome.code == 2
    assert "were in the training graph" in outcome.err
    outcome = run("calibrate", own_model, folder)
    assert "both labelled and new" in outcome.err


def test_an_archive_is_a_graph(run, model, small_graph, tmp_path):
    write_npz(small_graph, tmp_path / "g.npz")
    assert run("score", model, tmp_path / "g.npz", "--out", tmp_path / "deep" / "s.parquet", "--mkdir").code == 0
    assert len(pd.read_parquet(tmp_path / "deep" / "s.parquet")) == 120


@pytest.mark.parametrize(
    ("graph", "out", "reason"),
    [
        ("nowhere", "s.csv", "nowhere is neither a folder or file nor a dataset"),
        ("nowhere/", "s.csv", "does not exist"),
        ("nowhere.npz", "s.csv", "nowhere.npz does not exist"),
        ("nowhere", "s.txt", "a table is written to a .parquet or a .csv file"),
    ],
)
def test_mistakes(run, model, tmp_path, monkeypatch, graph, out, reason):
    monkeypatch.chdir(tmp_path)
    outcome = run("score", model, graph, "--out", out)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert reason in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_feature_column_is_named(run, model, folder, tmp_path):
    nodes = folder / "nodes.csv"
    nodes.write_text(nodes.read_text().replace("x11", "y11", 1))
    outcome = run("score", model, folder, "--out", tmp_path / "s.csv")
    assert outcome.code == 2
    assert "'x11'" in outcome.err
