"""``degem compare``: an answer, a page, and an exit code for pipelines."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from degem.cli.compare import DRIFTED


@pytest.fixture
def drifted(folder, tmp_path):
    """The graph of ``folder`` with other features."""
    other = tmp_path / "drifted"
    other.mkdir()
    nodes = pd.read_csv(folder / "nodes.csv")
    columns = [name for name in nodes if name.startswith("x")]
    nodes[columns] = -5 * nodes[columns].to_numpy()[:, ::-1]
    nodes.to_csv(other / "nodes.csv", index=False)
    (other / "edges.csv").write_text((folder / "edges.csv").read_text())
    return other


def test_the_same_window_passes(run, model, folder, tmp_path) -> None:
    out = tmp_path / "compare.html"
    done = run(
        "compare", model, folder, folder, "--keep-columns", "topic,strange", "--fail-on-drift", 0.01, "--out", out
    )
    assert done.code == 0, done.err
    assert "No sign of drift" in done.out
    assert "Has the graph drifted?" in out.read_text()


def test_a_drifted_window_fails_only_where_asked(run, model, folder, drifted) -> None:
    words = ("compare", model, folder, drifted, "--keep-columns", "topic,strange", "--json")
    quiet, loud = run(*words), run(*words, "--fail-on-drift", 0.01)
    assert (quiet.code, loud.code) == (0, DRIFTED)
    document = json.loads(loud.out)
    assert document["drifted"]
    assert document["p_value"] <= 0.01
    assert set(document["breakdowns"]) == {"predicted class", "degree"}


def test_a_level_that_cannot_be_reached_is_an_error(run, model, folder) -> None:
    failed = run("compare", model, folder, folder, "--permutations", 99, "--fail-on-drift", 0.01)
    assert failed.code == 2
    assert "200" in failed.err
