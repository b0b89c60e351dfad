"""One process of a run: every task that shares a dataset, a kind of shift, a seed and a label rate."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import os
import resource
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from degem.bench.protocols import Outcome, run, run_arrival
from degem.bench.specs import Task
from degem.bench.store import Row, Store
from degem.detectors import Detector
from degem.detectors.backbone import BackboneCache, BackboneDetector
from degem.shifts import Arrival, Scenario, Settings, load_arrival, load_scenario

BUSY = 75  # exit code: another run works on the same group
CLAIMS = ".claims"


@dataclass(frozen=True)
class Group:
    """Tasks on one training graph; detectors that share a network train it once.

    Arguments:
        dataset: The dataset.
        kind: The kind of shift.
        seed: The seed.
        protocol: The protocol.
        label_rate: The share of training labels.
        tasks: What to do.
    """

    dataset: str
    kind: str
    seed: int
    protocol: str
    label_rate: float
    tasks: tuple[Task, ...]


def work(group: Group, folder: Path, data_dir: Path, threads: int, parent: int) -> None:
    """Run a group in this process and append its rows to the store, method by method."""
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    _end_with(parent)
    store = Store(folder)
    if _claimed(group, folder) is None:
        sys.exit(BUSY)
    done = {key for key, row in store.latest().items() if not row.error}  # by another run, meanwhile
    group = replace(group, tasks=tuple(task for task in group.tasks if key_of(task) not in done))
    gc.freeze()  # the libraries' objects stay: collecting is then cheap
    for rows in results(group, lambda: scenario_of(group, data_dir)):
        store.append(rows)
        gc.collect()


def _claimed(group: Group, folder: Path) -> int | None:
    """A lock on one byte of a file, a byte for each group, so that two runs into one store share the work.

    The file stays open: the system frees the lock when this process ends, in whatever way.
    """
    identity = (group.dataset, group.kind, group.seed, group.protocol, group.label_rate)
    place = int.from_bytes(hashlib.sha256(repr(identity).encode()).digest()[:7])
    handle = os.open(folder / CLAIMS, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except BlockingIOError:
        return None
    return handle


def key_of(task: Task) -> tuple[str, ...]:
    """What tells the row of a task from others."""
    place = (task.dataset, task.shift, str(task.seed), task.protocol)
    return task.variant.method, *place, version("degem"), task.parameters


def scenario_of(group: Group, data_dir: Path) -> Scenario | Arrival:
    """The scenario that the tasks of a group share."""
    load = load_arrival if group.protocol == "arrival" else load_scenario
    return load(group.dataset, group.kind, Settings(seed=group.seed, label_rate=group.label_rate), data_dir)


def results(group: Group, load: Callable[[], Scenario | Arrival]) -> Iterator[list[Row]]:
    """The rows of a group, one list a fit; whatever fails is a row that says how."""
    if not group.tasks:
        return
    try:
        scenario = load()
    except Exception as error:
        yield [failed(task, error) for task in group.tasks]
        return
    cache = BackboneCache()
    for tasks in _fits(group, scenario):
        _reset_peak()
        try:
            detector = tasks[0].variant.detector(group.seed)
            if isinstance(detector, BackboneDetector) and group.protocol != "oracle":
                detector.share(cache)  # the oracle looks into each training, so each has its own
            shifts = [task.shift for task in tasks]
            if isinstance(scenario, Arrival):
                outcomes = run_arrival(detector, scenario, shifts)
            else:
                outcomes = run(group.protocol, detector, scenario, shifts)
            peak = _peak_mib()
            yield [_done(task, outcomes[task.shift], peak) for task in tasks]
        except Exception as error:
            yield [failed(task, error) for task in tasks]


def _fits(group: Group, scenario: Scenario | Arrival) -> Iterator[Sequence[Task]]:
    """Tasks by what has to be fitted: once a variant, but once for each exposure set where the method uses it."""
    fits: dict[tuple[str, int], list[Task]] = defaultdict(list)
    for task in group.tasks:
        exposure = 0
        if isinstance(scenario, Scenario) and Detector.registry[task.variant.method].needs_exposure:
            exposure = id(scenario.exposure[task.shift])
        fits[task.parameters + task.variant.method, exposure].append(task)
    return iter(fits.values())


def _done(task: Task, outcome: Outcome, peak_mib: float) -> Row:
    figures = asdict(outcome)
    return _row_of(task, peak_mib=peak_mib, **figures.pop("metrics"), **figures)


def failed(task: Task, error: Exception | str) -> Row:
    """The row of a task that did not finish."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return _row_of(task, error=text or "unknown error")


def _row_of(task: Task, **found: Any) -> Row:
    place = (task.variant.method, task.dataset, task.shift, task.seed, task.protocol)
    return Row(*place, version=version("degem"), parameters=task.parameters, **found)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, so that a killed run leaves nothing computing."""

    def watch() -> None:
        while True:
            time.sleep(1)
            try:
                os.kill(parent, 0)
            except ProcessLookupError:
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _reset_peak() -> None:
    """Let Linux count this process's peak memory anew."""
    with contextlib.suppress(OSError):  # then the peak is that of the process so far
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mib() -> float:
    try:
        status = Path("/proc/self/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
