from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from degem import cli
from degem.cli import app
from degem.errors import GraphError

COMMANDS = ["demo", "fit", "score", "evaluate", "info", "methods"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run, command):
    outcome = run(command, "--help")
    assert outcome.code == 0
    assert f"Example: degem {command}" in " ".join(outcome.out.split())


def test_every_command_is_described(run):
    listed = run("--help").out
    assert all(f" {command} " in listed for command in COMMANDS)
    assert all((command.callback.__doc__ or "").strip() for command in app.registered_commands)


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


def test_debug_shows_the_traceback_wherever_it_stands(monkeypatch):
    _failing(monkeypatch, GraphError("bad"))
    with pytest.raises(GraphError):
        cli.main(["info", "model", "--debug"])


def test_debug_is_accepted_behind_the_command(run, tmp_path):
    with pytest.raises(ValueError, match="not a model folder"):
        cli.main(["info", str(tmp_path), "--debug"])


def test_ctrl_c_leaves_no_half_file(tmp_path):
    """A fit is interrupted once training has begun, as told by the file that the stand-in step writes."""
    script = (
        "import time, pathlib, degem.cli, degem.detectors.degem.detector as d\n"
        "def step(*a, **k):\n"
        "    pathlib.Path('began').touch()\n"
        "    time.sleep(60)\n"
        "d.train = step\n"
        "from degem.data.demo import heterophilic_graph\n"
        "from degem.data.archives import write_npz\n"
        "write_npz(heterophilic_graph(num_nodes=70), 'g.npz')\n"
        "degem.cli.main(['fit', 'g.npz', '--out', 'model'])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "began").exists():
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert sorted(os.listdir(tmp_path)) == ["began", "g.npz"]  # noqa: PTH208


def test_a_usage_error_exits_with_two(run):
    outcome = run("fit", "graph")
    assert outcome.code == 2
    assert "--out" in outcome.err


def test_console_script_is_installed():
    script = Path(sys.executable).with_name("degem")
    if not script.exists():
        pytest.skip("degem is not installed as a script beside this Python: run make test")
    assert subprocess.run([script, "--help"], capture_output=True, check=True).stdout
