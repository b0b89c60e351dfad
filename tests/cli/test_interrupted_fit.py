"""A fit that is interrupted, through the command itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys


def test_ctrl_c_in_the_middle_of_training_leaves_no_file(folder, tmp_path):
    target, scratch = tmp_path / "target", tmp_path / "scratch"
    scratch.mkdir()
    words = ["fit", str(folder), "--label-column", "topic", "--keep-columns", "strange", "--out", str(target / "model")]
    words.append("--mkdir")
    code = """if True:
        import signal, sys
        import degem.training
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def endless(*_, **__):
            print("training", flush=True)
            signal.pause()
        degem.training.train = endless
        from degem.cli import main
        main(sys.argv[1:])
    """
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "TMPDIR": str(scratch), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "training\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert list(scratch.iterdir()) == []
    assert not target.exists()
