"""``degem trust``: errors of the model's classifier, and of another one."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

COLUMNS = ["--label-column", "topic", "--keep-columns", "strange"]


@pytest.fixture
def fitted(run, folder: Path, tmp_path: Path) -> Path:
    path = tmp_path / "fitted"
    assert run("fit", folder, *COLUMNS, "--method", "msp", "--set", "num_epochs=5", "--out", path).code == 0
    return path


def test_chances_of_the_models_own_classes(run, fitted: Path, folder: Path, tmp_path: Path) -> None:
    told = json.loads(run("trust", fitted, folder, *COLUMNS, "--out", tmp_path / "trust.csv", "--json").out)
    table = pd.read_csv(tmp_path / "trust.csv")
    assert table["error_chance"].between(0, 1).all()
    assert told["nodes"] == len(table) == 120
    assert told["expected_wrong"]["all"] == pytest.approx(table["error_chance"].mean())
    assert told["expected_wrong"]["trusted_half"] == pytest.approx(np.sort(table["error_chance"])[:60].mean())


def test_chances_of_another_classifier_by_the_names_of_its_columns(
    run, fitted: Path, folder: Path, tmp_path: Path
) -> None:
    nodes = pd.read_csv(folder / "nodes.csv")
    red = np.where(nodes["topic"] == "red", 4.0, -4.0)
    pd.DataFrame({"id": nodes["id"], "red": red, "blue": -red}).to_csv(tmp_path / "right.csv", index=False)
    pd.DataFrame({"id": nodes["id"], "red": -red, "blue": red}).to_csv(tmp_path / "wrong.csv", index=False)
    found = {}
    for name in ("right", "wrong"):
        words = ["--logits", tmp_path / f"{name}.csv", "--out", tmp_path / f"{name}-trust.csv"]
        assert run("trust", fitted, folder, *COLUMNS, *words).code == 0
        found[name] = pd.read_csv(tmp_path / f"{name}-trust.csv")
    assert (found["right"]["predicted_class"] == np.where(red > 0, "red", "blue")).all()
    assert found["right"]["error_chance"].mean() < 0.1
    assert found["wrong"]["error_chance"].mean() > 0.5
    pd.DataFrame({"id": nodes["id"], "red": red, "green": -red}).to_csv(tmp_path / "odd.csv", index=False)
    refused = run("trust", fitted, folder, *COLUMNS, "--logits", tmp_path / "odd.csv", "--out", tmp_path / "t.csv")
    assert refused.code == 2
    assert "'blue' is in one alone" in refused.err
