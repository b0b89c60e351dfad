"""Memory maps that stay out of resident memory, and how much memory there is."""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BUDGET_SHARE, BLOCK = 0.25, 1 << 16


def release(array: Any) -> None:
    """Let go of the pages of a file-backed memory map that were read or written so far; their content stays.

    Anything else, a private (copy-on-write) map too, is left as it is.
    """
    base = _shared_map(array)
    if base is not None and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def is_mapped(array: NDArray[Any]) -> bool:
    """Whether an array is a memory map that :func:`release` lets go of.

    Example:
        >>> is_mapped(np.ones(3))
        False
    """
    return _shared_map(array) is not None


def rows_of(array: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Some rows of an array; of a memory map as a memory map, in a temporary file that goes with it.

    Example:
        >>> rows_of(np.eye(2), np.array([1]))
        array([[0., 1.]])
    """
    if not is_mapped(array):
        return np.asarray(array[rows])
    with tempfile.TemporaryFile() as file:
        taken = np.memmap(file, dtype=array.dtype, mode="w+", shape=(len(rows), *array.shape[1:]))
    for start in range(0, len(rows), BLOCK):
        taken[start : start + BLOCK] = array[rows[start : start + BLOCK]]
        release(array)
        release(taken)
    return taken


def _shared_map(array: NDArray[Any]) -> mmap.mmap | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and base.mode == "c":
            return None
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def default_budget() -> float:
    """The memory that hop features may take, in MiB: a quarter of what the machine, or its container, has left."""
    return BUDGET_SHARE * available_mib()


def available_mib() -> float:
    """The memory that the machine, or its container, has left, in MiB."""
    return min(_available(), _container_left()) / 2**20


def _available() -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):  # no Linux: half of what is built in
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2


def _container_left() -> float:
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        return float("inf") if limit == "max" else max(float(limit) - used, 0.0)
    except (OSError, ValueError):
        return float("inf")
