"""The benchmark's groups as tasks of a cluster: the same store, the same rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import ray
import torch

from degem.bench.runner import POLL, Listener, Status, grouped, lost_rows, name_of, pending
from degem.bench.specs import Task
from degem.bench.store import Row, Store
from degem.bench.worker import Group, results, scenario_of
from degem.data.datasets import data_root
from degem.engine.cluster import LOST, connected


def run(
    tasks: Sequence[Task],
    folder: Path,
    *,
    address: str = "local",
    data_dir: Path | None = None,
    listener: Listener = lambda status, new: None,
) -> Status:
    """Do the tasks that are not done, a group a core of the cluster; rows come back here and go to the store.

    Arguments as of :func:`degem.bench.runner.run`; every node sees ``data_dir``.
    """
    store, data_dir = Store(folder), data_root(data_dir)
    todo = pending(tasks, store)
    status = Status(total=len(todo), skipped=len(tasks) - len(todo))
    if not todo:
        return status
    store.prepare()
    with connected(address):
        task, running = ray.remote(_rows), {}
        for group in grouped(todo):
            asked = task.options(name=name_of(group), num_cpus=1, max_retries=0)
            running[asked.remote(group, data_dir)] = group
            status.running[name_of(group)] = time.perf_counter()
        while running:
            new: list[Row] = []
            for reference in ray.wait(list(running), timeout=POLL)[0]:
                group = running.pop(reference)
                status.running.pop(name_of(group), None)
                try:
                    rows: list[Row] = ray.get(reference)
                except LOST:
                    rows = lost_rows(group, [], -9)
                store.append(rows)
                new += rows
            status.rows += new
            listener(status, new)
    return status


def _rows(group: Group, data_dir: Path) -> list[Row]:
    torch.set_num_threads(1)
    return [row for rows in results(group, lambda: scenario_of(group[0], data_dir)) for row in rows]
