"""The command on outputs of one's own network."""

from pathlib import Path

import numpy as np
import pandas as pd


def test_fit_and_score_read_outputs_by_id(run, folder: Path, tmp_path: Path) -> None:
    ids = pd.read_csv(folder / "nodes.csv")["id"]
    logits = np.random.default_rng(0).normal(size=(len(ids), 2))
    table = pd.DataFrame({"id": ids, "red": logits[:, 0], "blue": logits[:, 1]})
    table.sample(frac=1, random_state=0).to_csv(tmp_path / "logits.csv", index=False)
    columns = ["--label-column", "topic", "--keep-columns", "strange", "--logits", tmp_path / "logits.csv"]
    fitted = run("fit", folder, *columns, "--method", "msp", "--out", tmp_path / "model")
    assert fitted.code == 0
    assert "name the nodes that it was trained on" in fitted.err
    assert run("score", tmp_path / "model", folder, *columns, "--out", tmp_path / "scores.csv").code == 0
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert scores["predicted_class"].tolist() == np.where(logits[:, 0] > logits[:, 1], "red", "blue").tolist()
    since = run("score", tmp_path / "model", folder, *columns, "--new-since", folder, "--out", tmp_path / "new.csv")
    assert "of 0 nodes" in since.out
    silent = run("score", tmp_path / "model", folder, *columns[:4], "--out", tmp_path / "scores.csv")
    assert silent.code == 2
    assert "--logits or --embeddings FILE" in silent.err
