"""What the benchmarks share: a process of its own for each measurement, peak memory, the machine, tables."""

from __future__ import annotations

import multiprocessing
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np
import pandas as pd
import torch

from degem import Graph
from degem.errors import GraphNotice

RESULTS = Path(__file__).parent / "results"
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def in_child(function: Callable[Arguments, Result], *args: Arguments.args, **options: Arguments.kwargs) -> Result:
    """Call a function in a fresh process, so that one measurement's memory is not another's."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **options).result()


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


def best_of(function: Callable[[], object], repeats: int = 5) -> float:
    """The shortest time of some calls after one that is not counted."""
    function()
    return min(_timed(function) for _ in range(repeats))


def machine() -> dict[str, str | int]:
    """Where the figures come from."""
    cpu = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "machine": f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB",
        "threads": torch.get_num_threads(),
        "load": f"{os.getloadavg()[0]:.1f}",
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


def write(rows: Sequence[dict[str, object]], name: str) -> Path:
    """Write rows with the machine they were measured on into the results' folder."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.csv"
    pd.DataFrame(rows).assign(**machine()).to_csv(path, index=False, float_format="%.6g")
    return path


def _timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _status(name: str) -> float:
    """A figure of /proc/self/status in MiB."""
    return next((int(line.split()[1]) / 1024 for line in _lines("/proc/self/status") if line.startswith(name)), 0.0)


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
