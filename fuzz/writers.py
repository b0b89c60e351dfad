"""Writers that are killed at random points, and two of them at once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from degem import model_file
from degem.bench.store import Store
from degem.data.archives import read_npz
from degem.errors import DegemError

PREAMBLE = """
import sys, warnings
from pathlib import Path
import numpy as np
warnings.simplefilter("ignore")
home = Path(sys.argv[1])
print("ready", flush=True)
for turn in range(1, 1_000_000):
"""
WRITERS = {
    "model": """
    if turn == 1: import torch; from degem import model_file
    model_file.write(home / "model", {"w": torch.full((20_000,), float(turn))}, {"turn": turn})
""",
    "archive": """
    if turn == 1: from degem.data.archives import write_npz; from fuzz.files import small_graph
    write_npz(small_graph().replace(columns={"turn": np.full(4, turn)}), home / "g.npz")
""",
    "scores": """
    if turn == 1: import pandas as pd; from degem.cli.common import write_table
    write_table(pd.DataFrame({"turn": np.full(5000, turn)}), home / ("t.csv" if turn % 2 else "t.parquet"))
""",
    "report": """
    if turn == 1: from degem.files import write_text
    write_text(home / "r.html", f"<html>{turn}" + "x" * 2_000_000 + f"{turn}</html>")
""",
    "store": """
    if turn == 1: from degem.bench.store import Row, Store
    Store(home).append([Row("m", "d", "s", turn, "strict", 1, 1, 1, 1, 1, 1, 1, "1", '{"x": "' + "x" * 3000 + '"}')])
""",
}


def _model(home: Path) -> None:
    state, about = model_file.read(home / "model")
    assert (state["w"] == about["turn"]).all(), "half a model"


def _archive(home: Path) -> None:
    turns = read_npz(home / "g.npz").columns["turn"]
    assert (turns == turns[0]).all(), "half an archive"


def _scores(home: Path) -> None:
    import pandas as pd

    for path, read in ((home / "t.csv", pd.read_csv), (home / "t.parquet", pd.read_parquet)):
        if path.exists():
            turns = read(path)["turn"]
            assert (len(turns), turns.nunique()) == (5000, 1), "half a table"


def _report(home: Path) -> None:
    text = (home / "r.html").read_text()
    turn = text.removeprefix("<html>").partition("x")[0]
    assert text == f"<html>{turn}" + "x" * 2_000_000 + f"{turn}</html>", "half a page"


def _store(home: Path) -> None:
    seeds = [row.seed for row in Store(home).rows()]
    assert seeds == list(range(1, len(seeds) + 1)), "rows lost or twice"


CHECKS: dict[str, Callable[[Path], None]] = {
    "model": _model, "archive": _archive, "scores": _scores, "report": _report, "store": _store
}  # fmt: skip


def run(kills: int, savers: int, seed: int) -> list[tuple[str, int, int, list[str]]]:
    """A row for each writer: its name, how often it was tried, what went wrong."""
    rows = [(f"kill -9: {name}", kills, 0, killed(name, kills, seed)) for name in WRITERS] if kills else []
    return rows + ([("two savers of one model", savers, 0, two_savers(savers))] if savers else [])


def killed(name: str, times: int, seed: int) -> list[str]:
    """What was found wrong after each of some kills of a writer, all in one folder."""
    rng, failed = random.Random(f"{name} {seed}"), []
    home = Path(tempfile.mkdtemp(prefix="degem-kill-"))
    for turn in range(times):
        if name == "store":
            (home / "results.csv").unlink(missing_ok=True)
        writer = subprocess.Popen([sys.executable, "-c", PREAMBLE + WRITERS[name], str(home)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        deadline = time.monotonic() + 60
        while not any(path.is_file() for path in home.rglob("*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(rng.random() * (0.3 if turn else 2))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        try:
            CHECKS[name](home)
        except (AssertionError, DegemError, FileNotFoundError, ValueError) as error:
            failed.append(f"{type(error).__name__}: {error}")
    return failed


SAVER = """
import sys, torch
from pathlib import Path
from degem import model_file
print("ready", flush=True)
sys.stdin.readline()
for turn in range(int(sys.argv[3])):
    value = float(turn + int(sys.argv[2]))
    model_file.write(Path(sys.argv[1]), {"w": torch.full((5000,), value)}, {"turn": value})
"""


def two_savers(rounds: int) -> list[str]:
    """What a reader found wrong while two processes saved one model folder, each that many times."""
    model = Path(tempfile.mkdtemp(prefix="degem-savers-")) / "model"
    savers = [
        subprocess.Popen(
            [sys.executable, "-c", SAVER, str(model), start, str(rounds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for start in ("0", "1000000")
    ]  # fmt: skip
    for saver in savers:
        assert saver.stdout is not None
        saver.stdout.readline()
    for saver in savers:
        assert saver.stdin is not None
        saver.stdin.write("\n")
        saver.stdin.flush()
    failed = []
    while any(saver.poll() is None for saver in savers):
        try:
            if (model / "model.json").exists():
                state, about = model_file.read(model)
                if not np.all(state["w"].numpy() == about["turn"]):
                    failed.append("tensors of one model, description of another")
        except DegemError as error:
            failed.append(str(error))
    failed += [f"a saver ended with {saver.returncode}" for saver in savers if saver.returncode]
    model_file.read(model)
    return failed
