from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest

from degem import Detector, read_graph

QUICK = ["--set", "num_epochs=1", "--set", "latent_dim=8", "--set", "num_hops=1", "--seed", 3]


@pytest.fixture
def grown(folder, tmp_path):
    """The folder after twenty nodes have arrived: ten as usual, ten far from all others."""
    path = tmp_path / "grown"
    shutil.copytree(folder, path)
    nodes = pd.read_csv(path / "nodes.csv")
    new = nodes.iloc[:20].assign(id=[f"new{row}" for row in range(20)])
    features = [name for name in nodes if name.startswith("x")]
    new.loc[new.index[10:], features] += 50.0
    pd.concat([nodes, new]).to_csv(path / "nodes.csv", index=False)
    with (path / "edges.csv").open("a") as file:
        file.writelines(f"new{row},n{row}\n" for row in range(20))
    return path


def test_a_model_without_labels_learns_the_new_nodes_but_not_what_it_flags(run, folder, grown, tmp_path):
    keep, model = ["--keep-columns", "topic,strange"], tmp_path / "model"
    assert run("fit", folder, "--out", model, *keep, *QUICK).code == 0
    old = Detector.load(model)
    outcome = run("update", model, grown, "--out", tmp_path / "new", *keep, "--alpha", 0.1, "--json")
    assert outcome.code == 0, outcome.err
    new = Detector.load(tmp_path / "new")
    assert new.get_params() == old.get_params()
    assert Detector.load(model).num_training_nodes_ == old.num_training_nodes_ == 108
    told = json.loads(outcome.out)
    assert told["training_nodes"] == {"before": 108, "after": new.num_training_nodes_}
    assert told["calibration_nodes"] == {"before": 12, "after": len(new.calibration_)}
    assert told["flagged"]["before"] >= 10 / 140
    assert 108 < new.num_training_nodes_ + len(new.calibration_) <= 130
    strange = [f"new{row}" for row in range(10, 20)]
    graph = read_graph(grown, keep_columns=["topic", "strange"])
    still_new = graph.node_ids[new.fit_nodes_.new_in(graph)]
    assert set(strange) <= set(still_new.tolist()) <= {f"new{row}" for row in range(20)}
    assert run("score", tmp_path / "new", grown, "--out", tmp_path / "s.csv", *keep, "--alpha", 0.1).code == 0
    table = pd.read_csv(tmp_path / "s.csv", index_col="node_id")
    assert table["is_ood"][strange].all()


def test_labels_say_what_is_learnt_and_one_line_says_what_changed(run, folder, grown, tmp_path):
    columns, model = ["--label-column", "topic", "--keep-columns", "strange"], tmp_path / "model"
    assert run("fit", folder, "--out", model, *columns, *QUICK).code == 0
    nodes = pd.read_csv(grown / "nodes.csv")
    new_labels = int(nodes["topic"][120:].notna().sum())
    outcome = run("update", model, grown, *columns, "--alpha", 0.2)
    assert outcome.code == 0, outcome.err
    updated = Detector.load(model)
    assert updated.num_training_nodes_ + len(updated.calibration_) == 80 + new_labels
    assert outcome.out.startswith(
        f"degem fitted again on {updated.num_training_nodes_} nodes (72 before), "
        f"calibrated on {len(updated.calibration_)} (8); "
    )
    assert outcome.out.count("\n") == 1
    assert outcome.out.endswith(f"): {model}\n")
