"""Columns of a user's tables, from the command: listed, chosen, remembered by the model."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

QUICK = ["--method", "feature-knn"]


@pytest.fixture
def table(tmp_path):
    """A folder whose columns are of every kind."""
    rng = np.random.default_rng(0)
    path = tmp_path / "people"
    path.mkdir()
    nodes = pd.DataFrame({"id": [f"p{row}" for row in range(100)], "balance": rng.normal(size=100)})
    nodes["zip"] = rng.choice([10115, 20095, 80331], 100)
    nodes["colour"] = rng.choice(["red", "blue"], 100)
    nodes.to_csv(path / "nodes.csv", index=False)
    pd.DataFrame({"s": nodes["id"], "t": np.roll(nodes["id"], 1)}).to_csv(path / "edges.csv", index=False)
    return path


def test_treatments_are_listed_chosen_and_remembered(run, table, tmp_path):
    told = json.loads(run("fit", table, "--dry-run", "--json").out)["columns"]
    assert {name: text.split(":")[0] for name, text in told.items()} == {
        "balance": "number",
        "zip": "number",
        "colour": "category",
    }
    spec = tmp_path / "columns.toml"
    spec.write_text('zip = "category"\nbalance = "left out"\n')
    assert "zip: category: 10115, 20095, 80331" in run("fit", table, "--dry-run", "--columns", spec).out
    assert run("fit", table, "--out", tmp_path / "model", "--columns", spec, *QUICK).code == 0
    info = json.loads(run("info", tmp_path / "model", "--json").out)
    assert info["columns"]["zip"] == "category: 10115, 20095, 80331"
    assert info["columns"]["balance"] == "left out"
    nodes = pd.read_csv(table / "nodes.csv").drop(columns="balance")
    nodes.loc[4, ["zip", "colour"]] = 1, ""
    nodes.to_csv(table / "nodes.csv", index=False)
    outcome = run("score", tmp_path / "model", table, "--out", tmp_path / "s.csv")
    assert outcome.code == 0, outcome.err
    assert pd.read_csv(tmp_path / "s.csv")["score"].idxmax() == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('zip = "categories"', "'categories' of 'zip' is none of number"),
        ('town = "category"', "no column 'town' (--columns)"),
        ("zip = 3", "needs one treatment"),
        ("zip", "cannot be read"),
    ],
)
def test_a_wrong_specification(run, table, tmp_path, text, message):
    (tmp_path / "columns.toml").write_text(text)
    outcome = run("fit", table, "--dry-run", "--columns", tmp_path / "columns.toml")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert message in outcome.err


def test_unknown_ids(run, table, tmp_path):
    with (table / "edges.csv").open("a") as file:
        file.write("p1,zed\n")
    assert "--unknown-ids" in run("fit", table, "--out", tmp_path / "model", *QUICK).err
    outcome = run("fit", table, "--out", tmp_path / "model", *QUICK, "--unknown-ids", "drop")
    assert (outcome.code, "1 of 101 edges end at 1 ids" in outcome.err) == (0, True)
    for words, rows in (([], 100), (["--unknown-ids", "add"], 101)):  # the model's choice, and another
        assert run("score", tmp_path / "model", table, "--out", tmp_path / "s.csv", *words).code == 0
        assert len(pd.read_csv(tmp_path / "s.csv")) == rows


def test_a_database(run, table, tmp_path):
    with closing(sqlite3.connect(tmp_path / "people.db")) as connection:
        pd.read_csv(table / "nodes.csv").to_sql("people", connection, index=False)
        pd.read_csv(table / "edges.csv").to_sql("edges", connection, index=False)
    database, query = f"sqlite:{tmp_path / 'people.db'}", ["--nodes-sql", "SELECT * FROM people"]
    assert run("fit", database, *query, "--out", tmp_path / "model", *QUICK).code == 0
    assert run("score", tmp_path / "model", database, *query, "--out", tmp_path / "a.csv").code == 0
    assert run("score", tmp_path / "model", table, "--out", tmp_path / "b.csv").code == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    outcome = run("score", tmp_path / "model", database, "--out", tmp_path / "c.csv")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "no such table: nodes" in outcome.err
