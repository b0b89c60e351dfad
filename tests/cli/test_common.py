from __future__ import annotations

import json
import stat

import numpy as np
import pandas as pd
import pytest
import torch

from degem.cli.common import Columns, open_graph, prepare_machine, print_json, replaced_file, write_table
from degem.errors import ParameterError


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def interrupted() -> None:
        with replaced_file(path) as staging:
            staging.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_is_readable_by_others(tmp_path):
    write_table(pd.DataFrame({"a": [1]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").stat().st_mode & stat.S_IRUSR
    (tmp_path / "plain").touch()
    assert (tmp_path / "t.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_json_knows_no_nan(capsys):
    print_json({"a": np.float64("nan"), "b": [np.int64(1), (2.5,)], "c": float("inf")})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [1, [2.5]], "c": None}


def test_threads_and_device():
    before = torch.get_num_threads()
    try:
        prepare_machine(2, "cpu")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    if not torch.cuda.is_available():
        with pytest.raises(ParameterError, match="no CUDA device"):
            prepare_machine(None, "cuda")


def test_a_dataset_has_its_own_columns():
    with pytest.raises(ParameterError, match="a dataset has its own"):
        open_graph("cora", Columns(label="topic"))


def test_a_dataset_by_name(data_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("DEGEM_DATA", str(data_dir))
    monkeypatch.setenv("DEGEM_CACHE", str(tmp_path))
    assert open_graph("Cora", Columns()).num_nodes == 2708


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, "nan"])
@pytest.mark.parametrize(
    "words",
    [
        ("score", "model", "graph", "--out", "s.csv", "--alpha"),
        ("score", "model", "graph", "--out", "s.csv", "--fdr"),
        ("evaluate", "model", "graph", "--ood", "strange", "--alpha"),
        ("report", "model", "graph", "--alpha"),
        ("compare", "model", "graph", "graph", "--alpha"),
    ],
)
def test_an_impossible_level_is_refused_before_the_work(run, words, level):
    outcome = run(*words, level)  # there is neither model nor graph: nothing was looked at
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert f"{words[-1]} {level}: a level must lie strictly between 0 and 1" in outcome.err
