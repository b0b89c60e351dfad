from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

import degem
from degem import cli
from degem.cli import app
from degem.cli.messages import messages
from degem.errors import GraphError, ScoreWarning

COMMANDS = ["demo", "fit", "score", "evaluate", "info", "methods"]


def test_the_version_is_that_of_the_package(run):
    assert run("--version") == (0, f"degem {degem.__version__}\n", "")
    assert degem.__version__ == version("degem")


def _python(*words: str, **environment: str) -> str:
    environment = {**os.environ, "COLUMNS": "80", **environment}
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def test_the_package_is_the_command():
    assert _python("-m", "degem", "--version") == f"degem {degem.__version__}\n"


def test_a_shell_can_complete_words():
    asked = {"_DEGEM_COMPLETE": "complete_bash", "COMP_WORDS": "degem sc", "COMP_CWORD": "1"}
    assert _python("-m", "degem", **asked).split() == ["score"]
    assert "--show-completion" in _python("-m", "degem", "--help")


@pytest.mark.parametrize("words", [[], ["score"], ["bench"], ["bench", "run"]])
def test_help_is_short_to_ask_for(run, words):
    assert run(*words, "-h") == run(*words, "--help")
    assert run(*words, "-h").code == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run, command):
    outcome = run(command, "--help")
    assert outcome.code == 0
    assert f"Example: degem {command}" in " ".join(outcome.out.split())


def test_every_command_is_described(run):
    listed = run("--help").out
    assert all(f" {command} " in listed for command in COMMANDS)
    assert all(f" {command} " in listed for command in cli.COMMANDS)
    group = typer.main.get_command(app)
    assert all(group.get_command(None, command).help.strip() for command in cli.COMMANDS)


def test_help_imports_nothing_heavy():
    code = "import sys, degem.cli; print(sorted({'torch', 'numpy', 'pandas', 'sklearn', 'numba'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _failing(monkeypatch, error: BaseException) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", fail)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (GraphError("row 3 is\nbad"), 2, "degem: row 3 is bad"),
        (FileNotFoundError(2, "No such file", "x.csv"), 2, "degem: x.csv: No such file"),
        (MemoryError("4 GiB"), 1, "degem: out of memory: 4 GiB"),
        (KeyError("k"), 1, "degem: unexpected KeyError: 'k' (--debug shows where)"),
    ],
)
def test_an_error_is_one_line(run, monkeypatch, error, code, line):
    _failing(monkeypatch, error)
    assert run("info") == (code, "", line + "\n")


def test_a_warning_is_told_once(capsys):
    with messages():
        for _ in range(3):
            warnings.warn(ScoreWarning("all the same\n\x1b[2J"), stacklevel=1)
    assert capsys.readouterr().err == "degem: note: all the same \\x1b[2J\n"


def test_what_is_told_goes_through_the_logger(caplog):
    with messages():
        warnings.warn(ScoreWarning("all the same"), stacklevel=1)
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("degem", "WARNING", "all the same")
    ]
    assert not logging.getLogger("degem").handlers


@pytest.mark.parametrize("place", [0, 5])
def test_quiet_says_nothing_but_errors(run, model, folder, tmp_path, place):
    words = ["score", model, folder, "--out", tmp_path / "s.csv", "--alpha", 0.01]  # too few calibration nodes
    assert "degem: note: " in run(*words).err
    words.insert(place, "--quiet")
    assert run(*words) == (0, "", "")
    assert run("score", model, "nowhere", "--out", tmp_path / "s.csv", "--quiet").err.count("\n") == 1


def test_debug_shows_the_traceback_wherever_it_stands(monkeypatch):
    _failing(monkeypatch, GraphError("bad"))
    with pytest.raises(GraphError):
        cli.main(["info", "model", "--debug"])


def test_debug_is_accepted_behind_the_command(run, tmp_path):
    with pytest.raises(ValueError, match="not a model folder"):
        cli.main(["info", str(tmp_path), "--debug"])


def _interrupt(*arguments: object, **options: object) -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture
def listening():
    """Ctrl-C is heard: a shell starts background jobs, and so perhaps this one, deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("target", "name"), [("degem.calibration.judged.Judged", "p_values"), ("pandas.DataFrame", "to_csv")]
)
@pytest.mark.usefixtures("listening")
def test_ctrl_c_while_scoring_leaves_no_half_file(run, model, folder, tmp_path, monkeypatch, target, name):
    monkeypatch.setattr(f"{target}.{name}", _interrupt)
    before = sorted(tmp_path.iterdir())
    outcome = run("score", model, folder, "--out", tmp_path / "scores.csv")
    assert (outcome.code, outcome.out) == (130, "")
    assert "Traceback" not in outcome.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["degem.training.Progress", "os.fsync"])
@pytest.mark.usefixtures("listening")
def test_ctrl_c_while_fitting_leaves_no_half_model(run, folder, tmp_path, monkeypatch, name):
    words = ["--feature-columns", "x0,x1", "--set", "num_epochs=1", "--set", "latent_dim=8"]
    assert run("fit", folder, "--out", tmp_path / "old", *words).code == 0
    old = {path: path.read_bytes() for path in (tmp_path / "old").iterdir()}
    monkeypatch.setattr(name, _interrupt)
    outcome = run("fit", folder, "--out", tmp_path / "old", *words, "--seed", 1, "--force")
    assert (outcome.code, outcome.out) == (130, "")
    assert {path: path.read_bytes() for path in (tmp_path / "old").iterdir()} == old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph", "old"]


@pytest.mark.parametrize(
    ("words", "said", "where"),
    [
        (["fit", "graph"], "--out", "degem"),
        (["fit"], "GRAPH", "see degem fit --help"),
        (["fit", "graph", "--seed", "x"], "--seed", "see degem fit --help"),
        (["fot"], "fot", "see degem --help"),
        (["bench", "run", "main", "--out", "x", "--protocol", "x"], "strict", "see degem bench run --help"),
        (["score", "--debug"], "MODEL", "see degem score --help"),
    ],
)
def test_a_usage_error_is_one_line_and_exits_with_two(run, words, said, where):
    outcome = run(*words)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert said in outcome.err
    assert where in outcome.err


@pytest.mark.parametrize("words", [[], ["bench"]])
def test_without_a_command_the_help_is_shown(run, words):
    outcome = run(*words)
    assert (outcome.code, outcome.err) == (2, "")
    assert "Commands" in outcome.out


def test_console_script_is_installed():
    script = Path(sys.executable).with_name("degem")
    if not script.exists():
        pytest.skip("degem is not installed as a script beside this Python: run make test")
    assert subprocess.run([script, "--help"], capture_output=True, check=True).stdout
