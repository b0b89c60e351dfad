"""The processes of a run: a server with every library loaded, from which workers are forked in no time.

Nothing slow is imported here, so that the server can start before anything else does.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable
from multiprocessing import forkserver

from degem.detectors.registry import METHODS

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shares(workers: int | None) -> tuple[int, int]:
    """The number of workers, and of threads for each: a core a thread, but no more than ``OMP_NUM_THREADS`` allows.

    Arguments:
        workers: Processes asked for; default one a core.

    Example:
        >>> shares(1)[0]
        1
    """
    count = max(1, min(workers or cores(), cores()))
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    threads = max(1, cores() // count)
    return count, min(threads, int(allowed)) if allowed.isdigit() and int(allowed) else threads


def fork_server(threads: int, methods: Iterable[str]) -> multiprocessing.context.ForkServerContext:
    """The server, started if it is not yet; its workers have their number of threads set before torch is loaded.

    Arguments:
        threads: Threads of a worker.
        methods: The methods whose libraries are loaded.
    """
    context = multiprocessing.get_context("forkserver")
    import_paths = (METHODS[method].import_path for method in sorted(set(methods) & METHODS.keys()))
    context.set_forkserver_preload(["degem.bench.preload", *(path.rpartition(".")[0] for path in import_paths)])
    before = dict(os.environ)
    os.environ |= dict.fromkeys(THREAD_VARIABLES, str(threads))
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ |= before
    return context
