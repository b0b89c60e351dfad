"""A fit that is interrupted and resumed, through the command itself."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from degem import Detector, model_file
from degem.detectors.degem.staged_energies import HeadTrainer

COLUMNS = ["--label-column", "topic", "--keep-columns", "strange"]
SETTINGS = ["--set", "num_epochs=400", "--set", "num_head_steps=50", "--set", "latent_dim=8"]
QUICK = ["--set", "num_epochs=12", "--set", "num_head_steps=9", "--set", "latent_dim=8"]


def same_model(one: Path, two: Path) -> bool:
    first, second = (Detector.load(path)._state() for path in (one, two))
    return all((first[name] == tensor).all() for name, tensor in second.items())


def test_ctrl_c_leaves_a_checkpoint_beside_the_model_and_nothing_else(run, folder, tmp_path):
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    scratch.mkdir()
    words = ["fit", str(folder), *COLUMNS, *SETTINGS, "--out", str(home / "model")]
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "import degem.checkpoint; degem.checkpoint.Checkpoints.due = lambda self: True\n"
    code += "from degem.cli import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "TMPDIR": str(scratch), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    state = home / "model.checkpoint"
    _wait_for(state / "train encoder.checkpoint")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"with --resume goes on from {state}" in told
    assert [file.name for file in home.iterdir()] == ["model.checkpoint"]
    assert [file.name for file in state.iterdir()] == ["train encoder.checkpoint"]
    assert list(scratch.iterdir()) == []

    outcome = run(*words, "--resume")
    assert (outcome.code, "checkpoint" in outcome.err) == (0, False)
    assert [file.name for file in home.iterdir()] == ["model"]
    assert run(*words[:-1], tmp_path / "whole").code == 0
    assert same_model(home / "model", tmp_path / "whole")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_fit_resumes_where_the_stages_wrote_at_different_times(run, folder, tmp_path, monkeypatch, elsewhere):
    state = tmp_path / ("state" if elsewhere else "model.checkpoint")
    words = ["fit", folder, *COLUMNS, *QUICK, *(["--checkpoint", state] if elsewhere else [])]
    assert run(*words, "--out", tmp_path / "whole").code == 0
    steps = _fit_until_the_head(run, [*words, "--out", tmp_path / "model"], monkeypatch)
    assert sorted(file.name for file in state.iterdir()) == ["train encoder.checkpoint", "train head.checkpoint"]
    outcome = run(*words, "--out", tmp_path / "model", "--resume")
    assert (outcome.code, "checkpoint" in outcome.err) == (0, False)
    assert steps == [0, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8]  # the checkpoint was of four steps
    assert not state.exists()
    assert same_model(tmp_path / "model", tmp_path / "whole")


def test_resuming_without_a_checkpoint_says_so(run, folder, tmp_path):
    outcome = run("fit", folder, "--out", tmp_path / "m", *COLUMNS, "--set", "num_epochs=2", "--resume")
    assert outcome.code == 0
    assert f"no checkpoint in {tmp_path / 'm.checkpoint'}" in outcome.err
    assert model_file.read_about(tmp_path / "m")["method"] == "degem"


def _fit_until_the_head(run, words: list[object], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Interrupt a fit in its head's sixth step, a checkpoint every eighth step; the list goes on with later steps."""
    steps: list[int] = []
    count, step = itertools.count(1), HeadTrainer.step

    def broken_once(self: HeadTrainer, index: int) -> dict[str, float]:
        steps.append(index)
        if index == 5 and steps.count(5) == 1:
            raise KeyboardInterrupt
        return step(self, index)

    monkeypatch.setattr(HeadTrainer, "step", broken_once)
    monkeypatch.setattr("degem.checkpoint.Checkpoints.due", lambda self: next(count) % 8 == 0)
    assert run(*words).code == 130
    return steps


def _wait_for(file: Path, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not file.exists():
        assert time.monotonic() < end, f"no {file} after {seconds} s"
        time.sleep(0.01)
