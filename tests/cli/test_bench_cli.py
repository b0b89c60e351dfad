import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from degem.bench.specs import spec_names
from degem.cli import app

runner = CliRunner()


@pytest.fixture
def here(tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEGEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DEGEM_DATA", str(data_dir))
    return tmp_path


def test_run_show_and_docs_from_end_to_end(here: Path) -> None:
    command = ["bench", "run", "main", "--methods", "degree,norm", "--datasets", "cornell", "--seeds", "11,12"]
    done = runner.invoke(app, [*command, "--shifts", "label", "--out", str(here / "out"), "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert "4 rows added" in done.output
    with (here / "out" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["method"], row["dataset"], row["shift"], row["seed"]) for row in rows} == {
        (method, "cornell", "label", seed) for method in ("degree", "norm") for seed in ("11", "12")
    }
    again = runner.invoke(app, [*command, "--shifts", "label", "--out", str(here / "out")])
    assert "0 rows added" in again.output
    for form in ("terminal", "markdown", "csv", "latex"):
        shown = runner.invoke(app, ["bench", "show", str(here / "out"), "--format", form])
        assert shown.exit_code == 0, shown.output
        assert "cornell" in shown.output
    compared = runner.invoke(app, ["bench", "show", str(here / "out"), "--compare", "degree", "norm"])
    assert "degree − norm" in compared.output
    wrong = runner.invoke(app, ["bench", "show", str(here / "out"), "--compare", "degree", "nosuch"])
    assert "--compare degree nosuch" in str(wrong.exception)
    assert "it has rows of degree, norm" in str(wrong.exception)
    page = here / "docs" / "results.md"
    assert runner.invoke(app, ["bench", "docs", str(here / "out"), "--out", str(page), "--mkdir"]).exit_code == 0
    assert page.read_text().startswith("# Results")


def test_rows_that_failed_are_kept_and_told_by_the_exit_code(here: Path, data_dir: Path) -> None:
    broken = shutil.copytree(data_dir / "WebKB", here / "data" / "WebKB").parent
    for path in broken.rglob("*.txt"):
        path.chmod(0o644)
        path.write_text("damaged")
    command = ["bench", "run", "main", "--methods", "degree", "--datasets", "cornell", "--seeds", "11,"]
    done = runner.invoke(app, [*command, "--data-dir", str(broken), "--out", str(here / "out"), "--workers", "1"])
    assert "3 of them failed" in done.output
    assert done.exit_code == 1
    with (here / "out" / "results.csv").open() as file:
        assert all(row["error"] for row in csv.DictReader(file))


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--seeds", "0"], "the seed 0 alone is 0,"),
        (["--seeds", ""], "seeds are how many"),
        (["--shifts", "bogus"], "there is no shift 'bogus'"),
        (["--shifts", "ES", "--datasets", "cora"], "cora has structure, feature, label"),
    ],
)
def test_what_would_run_nothing_or_everything_is_refused(flags: list[str], told: str, tmp_path: Path) -> None:
    done = runner.invoke(app, ["bench", "run", "main", "--methods", "degree", *flags, "--out", str(tmp_path / "out")])
    assert told in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_every_table_is_named_in_the_help() -> None:
    text = " ".join(runner.invoke(app, ["bench", "run", "--help"], terminal_width=300).output.split())
    page = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text()
    for name in spec_names():
        assert f"{name}," in text
        assert name in page.split("```")[1]


def test_absent_datasets_are_left_out_with_a_line(run: Callable[..., Any], tmp_path: Path) -> None:
    words = ["bench", "run", "main", "--methods", "degree", "--out", tmp_path / "out"]
    outcome = run(*words, "--data-dir", tmp_path / "nowhere")
    assert outcome.code == 0, outcome.err
    assert "degem: note: cora is not on this machine" in outcome.err
    assert "0 rows added" in outcome.out


def test_datasets_lists_what_is_here(here: Path) -> None:
    found = json.loads(runner.invoke(app, ["datasets", "--json"]).output)
    by_name = {row["name"]: row for row in found}
    assert by_name["cora"]["here"] is True
    assert by_name["arxiv"]["here"] is False
    assert by_name["arxiv"]["needs"] == ["ogbn_arxiv/raw/node-feat.csv.gz"]
    assert by_name["cora"]["needs"] == []
    assert by_name["cora"]["nodes"] == 2708
    shown = runner.invoke(app, ["datasets"]).output  # in 80 columns
    assert "cora" in shown
    assert "needs ogbn_arxiv/raw/node-feat.csv.gz" in shown
    assert "…" not in shown
    assert re.search(r"arxiv +169,343 +1,157,799 +128 +40 +0\.65 +no", shown)


def test_a_dataset_with_a_note_says_what_it_needs_too(here: Path) -> None:
    shown = runner.invoke(app, ["datasets", "--data-dir", str(here / "nowhere")]).output
    assert "twitch-de: needs Twitch/DE/raw/DE.npz" in shown
    assert "twitch-de: 3,170 multi-hot" in shown
    assert "cora: needs Planetoid/cora/raw/ind.cora.x and 7 more beside it" in shown
