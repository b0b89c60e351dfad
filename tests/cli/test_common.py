from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from degem.cli.common import ids_in, prepare_machine, print_json, shown, write_table
from degem.cli.options import Inputs
from degem.errors import DegemError, GraphError, ParameterError


def test_formulas_are_text_in_csv_and_numbers_are_left_alone(tmp_path):
    table = pd.DataFrame({"node_id": ["=1+1", "@x", "-5", "+49 30", "plain"], "score": [-1.0, 2, 3, 4, 5]})
    write_table(table, tmp_path / "t.csv")
    back = pd.read_csv(tmp_path / "t.csv")
    assert back["node_id"].tolist() == ["'=1+1", "'@x", "-5", "'+49 30", "plain"]
    assert back["score"].tolist() == [-1, 2, 3, 4, 5]
    write_table(table, tmp_path / "t.parquet")
    assert pd.read_parquet(tmp_path / "t.parquet")["node_id"].tolist() == table["node_id"].tolist()


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_what_no_file_can_hold_is_one_line(tmp_path, name):
    (tmp_path / name).write_text("old")
    with pytest.raises(GraphError, match="cannot be written"):
        write_table(pd.DataFrame({"a": [1], "b": pd.Series(["\udc80"], dtype=object)}), tmp_path / name)
    assert (tmp_path / name).read_text() == "old"


def test_a_link_and_a_mode_are_kept(tmp_path):
    (tmp_path / "target.csv").write_text("old")
    (tmp_path / "target.csv").chmod(0o640)
    (tmp_path / "t.csv").symlink_to("target.csv")
    write_table(pd.DataFrame({"a": [1]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").is_symlink()
    assert (tmp_path / "target.csv").read_text() == "a\n1\n"
    assert stat.S_IMODE((tmp_path / "target.csv").stat().st_mode) == 0o640


def test_a_table_is_readable_by_others(tmp_path):
    write_table(pd.DataFrame({"a": [1]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").stat().st_mode & stat.S_IRUSR
    (tmp_path / "plain").touch()
    assert (tmp_path / "t.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_json_knows_no_nan(capsys):
    print_json({"a": np.float64("nan"), "b": [np.int64(1), (2.5,)], "c": float("inf")})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [1, [2.5]], "c": None}


def test_what_names_hold_does_not_reach_the_terminal(capsys):
    print_json({"a": "\x9b2J\u202e\udc80"})
    said = capsys.readouterr().out
    assert said.isascii()
    assert json.loads(said) == {"a": "\x9b2J\u202e\udc80"}
    assert shown("\x1b[2J[/bold]").plain == r"\x1b[2J[/bold]"


def test_ids_are_separated_by_line_ends_alone(tmp_path):
    (tmp_path / "ids").write_bytes("a\x0bb\r\nc\u2028d\n\n".encode())
    assert ids_in(tmp_path / "ids") == ["a\x0bb", "c\u2028d"]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir])
def test_ids_come_from_a_regular_file(tmp_path, make):
    make(tmp_path / "ids")
    with pytest.raises(GraphError, match="ids cannot be read"):
        ids_in(tmp_path / "ids")


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
        Inputs(label_column="topic").graph("cora")


def test_a_dataset_by_name(data_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("DEGEM_DATA", str(data_dir))
    monkeypatch.setenv("DEGEM_CACHE", str(tmp_path))
    assert Inputs().graph("Cora").num_nodes == 2708


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "graph", "--out"),
        ("score", "model", "graph", "--out"),
        ("score", "model", "graph", "--fdr", 0.1, "--out", "s.csv", "--online"),
        ("calibrate", "model", "graph", "--out"),
        ("report", "model", "graph", "--out"),
        ("compare", "model", "graph", "graph", "--out"),
        ("demo", "--out"),
        ("bench", "run", "main", "--out"),
        ("bench", "ceiling", "--out"),
        ("bench", "figure", "results", "--out"),
        ("bench", "docs", "results", "--out"),
    ],
)
def test_a_mistyped_folder_is_refused_before_the_work(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    out = "moedls/march.html" if words[0] in ("report", "compare") else "moedls/march.csv"
    outcome = run(*words, out)  # there is neither model nor graph: nothing was looked at
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert f"{out}: there is no folder moedls" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_an_error_names_the_file_that_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.csv").symlink_to("/proc/nowhere/t.csv")
    for name in ("link.csv", "/proc/t.csv"):
        with pytest.raises(DegemError, match=f"^{name} cannot be written: "):
            write_table(pd.DataFrame({"a": [1]}), Path(name))


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
