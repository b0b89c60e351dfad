"""Writers that are killed at random points, and two of them at once."""

from __future__ import annotations

import contextlib
import functools
import itertools
import multiprocessing
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from degem import Detector, model_file
from degem.bench.store import Store
from degem.calibration import OnlineFDR
from degem.cli.common import write_table
from degem.data.archives import read_npz, write_npz
from degem.errors import DegemError
from degem.report import write_report
from fuzz import models
from fuzz.files import small_graph
from fuzz.states import ROW

LONGEST = 0.3  # seconds to the kill
PATIENCE = 120.0  # seconds until a writer begins


def _write_model(home: Path, turn: int) -> None:
    model_file.write(home / "model", {"w": torch.full((20_000,), float(turn))}, {"turn": turn})


def _read_model(home: Path) -> int:
    state, about = model_file.read(home / "model")
    assert (state["w"] == about["turn"]).all(), "half a model"
    return int(about["turn"])


def _write_archive(home: Path, turn: int) -> None:
    write_npz(small_graph().replace(columns={"turn": np.full(4, turn)}), home / "g.npz")


def _read_archive(home: Path) -> int:
    turns = read_npz(home / "g.npz").columns["turn"]
    assert (turns == turns[0]).all(), "half an archive"
    return int(turns[0])


def _write_scores(home: Path, turn: int) -> None:
    write_table(pd.DataFrame({"turn": np.full(5000, turn)}), home / ("t.csv" if turn % 2 else "t.parquet"))


def _read_scores(home: Path) -> int:
    found = []
    for path, read in ((home / "t.csv", pd.read_csv), (home / "t.parquet", pd.read_parquet)):
        if path.exists():
            turns = read(path)["turn"]
            assert (len(turns), turns.nunique()) == (5000, 1), "half a table"
            found.append(int(turns[0]))
    return max(found)


@functools.cache
def _detector() -> Detector:
    return Detector.registry["norm"]().fit(models.graph())


def _write_page(home: Path, turn: int) -> None:
    write_report(_detector(), models.graph(), home / "r.html", title=f"turn {turn} ")


def _read_page(home: Path) -> int:
    text = (home / "r.html").read_text()
    assert text.rstrip().endswith("</html>"), "half a page"
    return int(text.partition("turn ")[2].partition(" ")[0])


def _write_store(home: Path, turn: int) -> None:
    Store(home).append([replace(ROW, seed=turn, parameters='{"x": "' + "x" * 3000 + '"}')])


def _read_store(home: Path) -> int:
    seeds = [row.seed for row in Store(home).rows()]
    assert seeds == list(range(seeds[0], seeds[0] + len(seeds))), "rows lost or twice"
    return seeds[-1]


def _write_stream(home: Path, turn: int) -> None:
    with OnlineFDR.shared(home / "stream.json", 0.1) as stream:
        stream.decide(np.ones(turn - stream.num_seen))


def _read_stream(home: Path) -> int:
    return OnlineFDR.load(home / "stream.json").num_seen


WRITERS: dict[str, tuple[Callable[[Path, int], None], Callable[[Path], int]]] = {
    "a model": (_write_model, _read_model),
    "an archive": (_write_archive, _read_archive),
    "scores": (_write_scores, _read_scores),
    "a report": (_write_page, _read_page),
    "a store": (_write_store, _read_store),
    "a stream's state": (_write_stream, _read_stream),
}


def run(kills: int, savers: int, seed: int) -> Iterator[tuple[str, int, list[str]]]:
    """For each writer its name, how often it was tried, and what went wrong."""
    for name in WRITERS if kills else ():
        yield f"kill −9 of the writer of {name}", kills, killed(name, kills, seed)
    if savers:
        yield "rounds of two savers of one model", savers, two_savers(savers)


def killed(name: str, times: int, seed: int) -> list[str]:
    """What was found wrong after each of some kills of a writer, all in one folder."""
    rng, failed = random.Random(f"{name} {seed}"), []
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fuzz.writers"])
    home, last = Path(tempfile.mkdtemp(prefix="degem-kill-")), 0
    for _ in range(times):
        ours, theirs = context.Pipe(duplex=False)
        writer = context.Process(target=_write, args=(name, home, last + 1, theirs), daemon=True)
        writer.start()
        theirs.close()
        if not ours.poll(PATIENCE):
            failed.append("the writer did not begin")
        if rng.random() < 0.5:
            ours.recv()  # on a slow machine, too, some are killed behind their first write
            ours.poll(PATIENCE)
        time.sleep(rng.random() * LONGEST)
        writer.kill()
        writer.join()
        done = last
        with contextlib.suppress(EOFError):
            while True:
                done = ours.recv()
        try:
            found = WRITERS[name][1](home)
            if found not in (done, done + 1):  # what was said to be written, or what was next
                failed.append(f"write {found} is there, and {done} was done")
            last = found
        except (AssertionError, DegemError, FileNotFoundError, ValueError) as error:
            if done:
                failed.append(f"{type(error).__name__}: {error}")
    return failed


def _write(name: str, home: Path, first: int, pipe: Connection) -> None:
    """Write again and again, each time saying which write is done."""
    warnings.simplefilter("ignore")
    pipe.send(first - 1)
    for turn in itertools.count(first):
        WRITERS[name][0](home, turn)
        pipe.send(turn)


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
