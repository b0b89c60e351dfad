"""Runs tables: groups of tasks over processes, rows into a store, what is done already skipped."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from degem.bench.processes import fork_server, shares
from degem.bench.specs import Task
from degem.bench.store import Row, Store
from degem.bench.worker import BUSY, Group, failed, key_of, work
from degem.data.datasets import missing_files
from degem.data.locations import data_root
from degem.shifts.base import CITATION, EXPOSURE_DOMAIN, ID_DOMAIN, OOD_DOMAINS
from degem.shifts.scenarios import SYNTHETIC, TWITCH, kind_of

POLL = 0.2


@dataclass
class Status:
    """Where a run stands; handed to its listener.

    Arguments:
        total: Tasks to do in this run.
        skipped: Tasks that were done before.
        rows: Rows of this run so far.
        running: Groups at work, with the time each began.
        started: When the run began.
    """

    total: int
    skipped: int
    rows: list[Row] = field(default_factory=list)
    running: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)


Listener = Callable[[Status, Sequence[Row]], None]


def pending(tasks: Iterable[Task], store: Store) -> list[Task]:
    """The tasks without a good row of this version and these parameters."""
    done = {key for key, row in store.latest().items() if not row.error}
    return [task for task in tasks if key_of(task) not in done]


def run(
    tasks: Sequence[Task],
    folder: Path,
    *,
    data_dir: Path | None = None,
    workers: int | None = None,
    listener: Listener = lambda status, new: None,
) -> Status:
    """Do the tasks that are not done, ``workers`` groups at a time; each worker has its share of the cores.

    Arguments:
        tasks: What to do.
        folder: Where the store is.
        data_dir: The folder of raw datasets.
        workers: Processes; default one a core.
        listener: Told of every change.
    """
    store, data_dir = Store(folder), data_root(data_dir)  # as seen here: a fork server keeps its environment
    todo = pending(tasks, store)
    if todo:
        store.prepare()
    status = Status(total=len(todo), skipped=len(tasks) - len(todo))
    count, threads = shares(workers)
    context = fork_server(threads, {task.variant.method for task in todo})
    before = len(store.rows())
    mine = {key_of(task) for task in todo}  # another run may write into the same store
    waiting, seen, size = grouped(todo), before, store.size()
    active: list[tuple[BaseProcess, Group]] = []
    try:
        while waiting or active:
            while waiting and len(active) < count:
                group = waiting.pop(0)
                process = context.Process(target=work, args=(group, folder, data_dir, threads, os.getpid()))
                process.start()
                active.append((process, group))
                status.running[name_of(group)] = time.perf_counter()
            wait([process.sentinel for process, _ in active], POLL)
            for ended in [pair for pair in active if not pair[0].is_alive()]:
                active.remove(ended)
                status.running.pop(name_of(ended[1]), None)
                if ended[0].exitcode == BUSY:  # another process is at this group: see later what it left
                    waiting.append(ended[1])
                elif ended[0].exitcode:
                    store.append(lost_rows(ended[1], store.rows()[before:], ended[0].exitcode))
            new: list[Row] = []
            if store.size() != size:
                size, rows = store.size(), store.rows()
                new = [row for row in rows[seen:] if row.key in mine]
                seen = len(rows)
                status.rows += new
            listener(status, new)
    finally:
        for running, _ in active:
            running.kill()
    return status


def grouped(tasks: Iterable[Task]) -> list[Group]:
    """Tasks by training graph, in the order they came."""
    found: dict[tuple[str, str, int, str, float], list[Task]] = defaultdict(list)
    for task in tasks:
        found[task.dataset, kind_of(task.shift), task.seed, task.protocol, task.label_rate].append(task)
    return [Group(*key, tuple(members)) for key, members in found.items()]


def absent_datasets(datasets: Iterable[str], data_dir: Path | None = None) -> dict[str, list[Path]]:
    """Datasets whose raw files are not on this machine, with the files of one folder that are missing."""
    found = {}
    for dataset in datasets:
        sources = [dataset]
        if dataset.startswith(SYNTHETIC):
            sources = ["cora"]
        elif dataset == TWITCH:
            sources = [ID_DOMAIN, EXPOSURE_DOMAIN, *OOD_DOMAINS.values()]
        elif dataset in CITATION.values():
            sources = list(CITATION.values())
        missing = [paths for source in sources if (paths := missing_files(source, data_dir))]
        if missing:
            found[dataset] = missing[0]
    return found


def lost_rows(group: Group, rows: Sequence[Row], exitcode: int) -> list[Row]:
    """Rows for the tasks that a process took with it, killed or out of memory: those without a row of this run."""
    finished = {row.key for row in rows}
    reason = f"killed by signal {-exitcode}" if exitcode < 0 else f"ended with code {exitcode}"
    text = f"the worker was {reason}; too little memory is the usual cause"
    return [failed(task, text) for task in group.tasks if key_of(task) not in finished]


def name_of(group: Group) -> str:
    """What a listener calls a group."""
    rate = "" if group.label_rate == 1 else f" {group.label_rate:.0%} of labels"
    return f"{group.dataset} {group.kind} seed {group.seed}{rate}"
