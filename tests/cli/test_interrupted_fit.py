"""A fit that is interrupted by Ctrl-C and resumed, through the command itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from degem import Detector, model_file

SETTINGS = ["--set", "num_epochs=400", "--set", "num_head_steps=50", "--set", "latent_dim=8"]


def test_ctrl_c_leaves_a_checkpoint_and_nothing_else(run, folder, tmp_path):
    scratch, state = tmp_path / "scratch", tmp_path / "state"
    scratch.mkdir()
    columns = ["--label-column", "topic", "--keep-columns", "strange", *SETTINGS]
    words = ["fit", str(folder), *columns, "--checkpoint", str(state)]
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from degem.cli import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words, "--out", str(tmp_path / "model")],
        env={**os.environ, "TMPDIR": str(scratch), "OMP_NUM_THREADS": "1"},
    )
    _wait_for(state / "train encoder.checkpoint")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert [file.name for file in state.iterdir()] == ["train encoder.checkpoint"]
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "model").exists()

    assert run(*words, "--out", tmp_path / "model", "--resume").code == 0
    assert not state.exists()
    assert run(*words, "--out", tmp_path / "whole").code == 0
    resumed, whole = (Detector.load(tmp_path / name)._state() for name in ("model", "whole"))
    assert all((resumed[name] == tensor).all() for name, tensor in whole.items())


def test_resuming_without_a_checkpoint_says_so(run, folder, tmp_path):
    columns = ["--label-column", "topic", "--keep-columns", "strange", "--set", "num_epochs=2"]
    outcome = run("fit", folder, "--out", tmp_path / "m", *columns, "--checkpoint", tmp_path / "state", "--resume")
    assert outcome.code == 0
    assert "no checkpoint in" in outcome.err
    assert model_file.read_about(tmp_path / "m")["method"] == "degem"


def _wait_for(file: Path, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not file.exists():
        assert time.monotonic() < end, f"no {file} after {seconds} s"
        time.sleep(0.01)
