"""Runs inputs in a process of its own that may crash, hang or take too much memory, and says which did."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import shutil
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from fuzz import files, models, objects, states, uses

KINDS: dict[str, Callable[[random.Random, Path], files.Attempt]] = {
    "CSV folders": files.csv_folder,
    "Parquet folders": files.parquet_folder,
    "new nodes": files.new_nodes,
    "npz": files.npz,
    "memory maps": files.memory_maps,
    "PyG": objects.pyg,
    "NetworkX": objects.networkx,
    "arrays": objects.arrays,
    "models, damaged": models.damaged,
    "models, crafted": models.crafted,
    "streams": states.streams,
    "stores": states.stores,
    "calls": uses.calls,
    "commands": uses.commands,
    "hard graphs": uses.hard_graphs,
}
SLOW = {"commands": 0.1, "hard graphs": 0.1}  # their share of what the other kinds get
SECONDS = 10.0  # of processor time, so that a busy machine is no failure
WAITING = 120.0  # seconds in which nothing is computed
MEMORY = 2 << 30  # bytes beyond what the libraries take
STARTING = 120.0  # seconds of processor time: the libraries are loaded, models are fitted
ACCEPTED, REFUSED, READY = "accepted", "refused", "ready"
READ_LIMIT = "1024"  # MiB: what may be read, below what may be taken


@dataclass(frozen=True)
class Outcome:
    """What became of an input.

    Arguments:
        kind: Its kind.
        seed: The seed of the run.
        index: Its number in the run.
        what: ``accepted``, ``refused`` (by a ``DegemError`` of one line), or what went wrong.
    """

    kind: str
    seed: int
    index: int
    what: str

    @property
    def failed(self) -> bool:
        """Whether it was neither accepted as what it is nor refused in one line."""
        return self.what not in (ACCEPTED, REFUSED)

    def __str__(self) -> str:
        return f'{self.what}\n    python -m fuzz --kind "{self.kind}" --seed {self.seed} --only {self.index}'


def run(kind: str, seed: int, indices: range) -> Iterator[Outcome]:
    """The outcome of some inputs of a kind."""
    context = multiprocessing.get_context("spawn")
    at = 0
    while at < len(indices):
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, kind, seed, indices[at:]), daemon=True)
        process.start()
        theirs.close()
        patience = STARTING
        while at < len(indices):
            try:
                what = ours.recv() if _answers(ours, process, patience) else f"took longer than {patience:g} s"
            except EOFError:
                process.join()
                what = f"the process ended with code {process.exitcode}"
            if what != READY:
                yield Outcome(kind, seed, indices[at], what)
                at += 1
            if what.startswith(("took longer", "the process ended")):
                break
            patience = SECONDS
        process.kill()
        process.join()
        ours.close()


def _answers(pipe: Connection, process: BaseProcess, patience: float) -> bool:
    """Whether a process says something before it has computed, or stood still, for too long."""
    spent = begun = _processor_time(process)
    still = 0.0
    while not pipe.poll(1.0):
        before, spent = spent, _processor_time(process)
        still = still + 1.0 if spent == before else 0.0
        if spent - begun > patience or still > WAITING:
            return False
    return True


def _processor_time(process: BaseProcess) -> float:
    """The seconds of processor time of a process, 0 where it has ended."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _work(pipe: Connection, kind: str, seed: int, indices: range) -> None:
    """Inputs one after another; the answer says what became of each."""
    warnings.simplefilter("ignore")
    folder = Path(tempfile.mkdtemp(prefix="degem-fuzz-"))
    os.environ |= {"DEGEM_CACHE": str(folder / "cache"), "DEGEM_MAX_READ_MIB": READ_LIMIT}
    if kind.startswith("models"):
        for method in models.METHODS:
            models.scores(method)
    pipe.send(READY)
    for index in indices:
        pipe.send(attempt(kind, seed, index, folder))
        shutil.rmtree(folder)
        folder.mkdir()
    shutil.rmtree(folder, ignore_errors=True)


def attempt(kind: str, seed: int, index: int, folder: Path) -> str:
    """What becomes of one input."""
    from degem.errors import DegemError

    attempted = KINDS[kind](random.Random(f"{kind} {seed} {index}"), folder)
    _reset_peak()
    before, started = _peak(), time.process_time()
    outcome = ACCEPTED
    try:
        attempted()
    except DegemError as error:
        outcome, text = REFUSED, str(error)
        if not text.isprintable() or not text or len(text) > 1000:
            outcome = f"an error of {len(text)} characters that is not one line: {text[:80]!r}"
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        outcome = (
            f"{type(error).__name__}: {' '.join(str(error).split())[:100]} ({Path(place.filename).name}:{place.lineno})"
        )
    if (taken := _peak() - before) > MEMORY:
        outcome = f"took {taken / 2**20:,.0f} MiB"
    if (seconds := time.process_time() - started) > SECONDS:
        outcome = f"took {seconds:.0f} s"
    return outcome


def _reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
