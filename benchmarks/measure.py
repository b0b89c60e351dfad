"""What the benchmarks share: a process of its own for each measurement, peak memory, the machine, tables."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pandas as pd
import torch

from degem import Graph
from degem.errors import GraphNotice
from degem.training import Progress

TURN = 0.5  # seconds for which one function is called before the next one has its turn
RESULTS = Path(__file__).parent / "results"
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def in_child(function: Callable[Arguments, Result], *args: Arguments.args, **options: Arguments.kwargs) -> Result:
    """Call a function in a fresh process, so that one measurement's memory is not another's."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **options).result()


def arrival_table(
    about: str | None, name: str, measured: Callable[[str, int], Iterator[dict[str, Any]]], *, datasets: str, seeds: int
) -> pd.DataFrame:
    """Rows of a measurement by dataset and seed, as the command line asks for; those in the file are kept.

    Arguments:
        about: The text of ``--help``.
        name: The file of results.
        measured: The rows of one dataset and seed.
        datasets: The datasets by default, separated by commas.
        seeds: How many by default.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default=datasets, help="datasets by name, separated by commas")
    parser.add_argument("--seeds", type=int, default=seeds, help="how many")
    options = parser.parse_args()
    for dataset in options.datasets.split(","):
        rows = [row for seed in range(options.seeds) for row in measured(dataset, seed)]
        write(rows, name, key=["dataset"])
        print(pd.DataFrame(rows).to_string(index=False), flush=True)
    return pd.read_csv(RESULTS / f"{name}.csv")


@dataclass
class Measurement:
    """What a block of code took.

    Arguments:
        seconds: Wall-clock time.
        peak_mib: By how much resident memory rose at its peak.
        resident_mib: The whole process's resident memory at that peak.
    """

    seconds: float = 0.0
    peak_mib: float = 0.0
    resident_mib: float = 0.0


@contextmanager
def measured() -> Iterator[Measurement]:
    """Time and peak memory of a block; memory on Linux only."""
    found = Measurement()
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")  # the peak starts from here
    before, start = _status("VmRSS"), time.perf_counter()
    yield found
    found.seconds = time.perf_counter() - start
    found.resident_mib = _status("VmHWM")
    found.peak_mib = found.resident_mib - before


def best_of(*functions: Callable[[], object], turns: int = 5) -> list[float]:
    """The shortest time of a call of each.

    They take turns of some calls: the machine's speed wavers, and then does so for all of them alike.
    """
    return [min(times) for times in zip(*([_best_turn(f) for f in functions] for _ in range(turns)), strict=True)]


def machine() -> dict[str, str | int | float]:
    """Where the figures come from, and how busy other programs kept it just before the benchmark began."""
    cpu = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "machine": f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB",
        "threads": torch.get_num_threads(),
        "busy_before": round(_BUSY_BEFORE, 2),
        "torch": torch.__version__,
    }


def find_datasets() -> None:
    """Raw datasets are read from ``$DEGEM_DATA``, else from ``shared/data`` beside the repository, if it is there."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    if beside.is_dir():
        os.environ.setdefault("DEGEM_DATA", str(beside))


def planted_graph(num_nodes: int = 300, num_features: int = 16, seed: int = 0) -> Graph:
    """A small graph to warm up on: compiled kernels are then read, libraries loaded."""
    rng = np.random.default_rng(seed)
    labels = np.arange(num_nodes) % 3
    features = 2 * np.eye(3, num_features)[labels] + rng.random((num_nodes, num_features))
    edges = rng.integers(num_nodes, size=(4 * num_nodes, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphNotice)
        return Graph.from_arrays(features=features, edges=edges, labels=labels)


def markdown_table(frame: pd.DataFrame) -> str:
    """A frame of texts as a table of a Markdown page.

    Example:
        >>> markdown_table(pd.DataFrame({"dataset": ["cora"], "AUROC": ["96.0"]})).splitlines()
        ['| dataset | AUROC |', '| --- | --- |', '| cora | 96.0 |']
    """
    lines = [list(frame.columns), ["---"] * frame.shape[1], *frame.to_numpy().tolist()]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def write(rows: Sequence[dict[str, object]], name: str, *, key: Sequence[str]) -> Path:
    """Write rows with the machine they were measured on into the results' folder.

    Arguments:
        rows: The rows.
        name: The file's name, without its ending.
        key: Columns that tell what was measured: older rows of the same are replaced, others stay.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.csv"
    table = pd.DataFrame(rows).assign(**machine())
    if path.exists():
        old = pd.read_csv(path, keep_default_na=False, na_values=[""])
        measured = set(table[[*key]].astype(str).itertuples(index=False, name=None))
        again = [row in measured for row in old[[*key]].astype(str).itertuples(index=False, name=None)]
        table = pd.concat([frame for frame in (old[~np.array(again, dtype=bool)], table) if len(frame)])
    table.to_csv(path, index=False, float_format="%.6g")
    return path


def num_seeds(rows: pd.DataFrame, by: Sequence[str]) -> str:
    """How many seeds what ``by`` tells apart was measured with: one number, or the least and the most.

    Example:
        >>> num_seeds(pd.DataFrame({"dataset": ["cora", "cora", "actor"], "seed": [0, 1, 0]}), ["dataset"])
        '1–2'
    """
    counts = rows.groupby([*by])["seed"].nunique()
    return "–".join(map(str, sorted({counts.min(), counts.max()})))


class PhaseClock:
    """A listener that adds up the seconds of each phase; what no phase claims is ``other``."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._last = time.perf_counter()

    def __call__(self, progress: Progress) -> None:
        now = time.perf_counter()
        self.seconds[progress.phase if progress.done else "other"] += now - self._last  # a report follows its work
        self._last = now


def _busy_share(seconds: float = 0.5) -> float:
    """The share of the cores that is in use right now; 0 where Linux does not tell."""
    ticks = [_cpu_ticks()]
    time.sleep(seconds)
    ticks.append(_cpu_ticks())
    total, idle = (after - before for before, after in zip(*ticks, strict=True))
    return 1 - idle / total if total else 0.0


def _cpu_ticks() -> tuple[int, int]:
    fields = [int(field) for field in next(iter(_lines("/proc/stat")), "cpu 0 0 0 0 0").split()[1:]]
    return sum(fields), fields[3] + fields[4]


def _best_turn(function: Callable[[], object]) -> float:
    """The shortest time of calls one after the other; the first does not count."""
    function()
    until, times = time.perf_counter() + TURN, [_timed(function)]
    while time.perf_counter() < until:
        times.append(_timed(function))
    return min(times)


def _timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _status(name: str) -> float:
    """A figure of /proc/self/status in MiB."""
    return next((int(line.split()[1]) / 1024 for line in _lines("/proc/self/status") if line.startswith(name)), 0.0)


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


_BUSY_BEFORE = _busy_share() if multiprocessing.parent_process() is None else 0.0
