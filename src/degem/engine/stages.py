"""What workers do: a strip of columns through all hops, or a function of a block of rows. Outputs go to the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from degem.engine.packing import unpacked
from degem.engine.store import Store, moved, store_at
from degem.errors import DegemError
from degem.ops.neighbours import average
from degem.propagation.propagator import Columns, Parts, taken
from degem.threads import one_thread


@dataclass(frozen=True)
class Output:
    """Where a task's arrays go."""

    store: Store
    prefix: str  # what their names begin with

    def write(self, part: str, array: NDArray[Any]) -> None:
        """Put a part of the output there."""
        self.store.write(self.prefix + part, array)

    def has(self, part: str) -> bool:
        """Whether a part is there."""
        return self.store.has(self.prefix + part)

    def read(self, part: str) -> NDArray[Any]:
        """A part that is there."""
        return self.store.rows(self.prefix + part, slice(None))


Stage = Callable[..., None]


def run_task(content: bytes, folder: str, span: tuple[int, int], uri: str, num_threads: int) -> Counter[str]:
    """One task of a stage, in a worker's process; the bytes that it moved."""
    before = moved.copy()
    torch.set_num_threads(num_threads)
    store = store_at(uri)
    try:
        stage, shared = _stage(content, uri)
        with one_thread():  # what several threads add up would not be the same bits again
            stage(*shared, slice(*span), Output(store, f"{folder}{span[0]}-{span[1]}-"))
    except MemoryError:
        raise DegemError(f"a worker has too little memory for {folder} {span[0]}-{span[1]}") from None
    return moved - before


@lru_cache(maxsize=2)
def _stage(content: bytes, uri: str) -> tuple[Stage, tuple[Any, ...]]:
    """The tasks of a stage have this in common: unpacked once a process."""
    stage, shared = unpacked(content, store_at(uri))
    return stage, shared


def walk(
    adjacency: sp.csr_array,
    columns: Columns,
    hops: Sequence[int],
    self_weight: float,
    weight: float,
    sampled: NDArray[np.int64] | None,
    strip: slice,
    output: Output,
) -> None:
    """Take a strip of columns through all hops; write some of them, each as it is done, or some nodes of these."""
    shape = (int(adjacency.shape[0]), strip.stop - strip.start)
    values, spare = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
    done = max((hop for hop in hops if output.has(str(hop))), default=-1)  # an earlier try may have left some
    if done >= 0:
        values[:] = output.read(str(done))
    rows: list[NDArray[np.float32]] = []
    for hop in range(done + 1, hops[-1] + 1):
        if hop == 0:
            columns.write(strip, values)
        else:
            average(adjacency, values, self_weight=self_weight, weight=weight, out=spare)
            values, spare = spare, values
        if hop in hops and sampled is None:
            output.write(str(hop), values)
        elif hop in hops:
            rows.append(values[sampled])
    if sampled is not None:
        output.write("sample", np.stack(rows))


def map_block(
    function: Callable[..., Parts], sources: Sequence[Any], block_rows: int, rows: slice, output: Output
) -> None:
    """Write what a function makes of some rows, a part each; the first part comes last, so with it all are there."""
    blocks = [slice(start, min(start + block_rows, rows.stop)) for start in range(rows.start, rows.stop, block_rows)]
    made = [function(*(taken(source, block) for source in sources)) for block in blocks]
    parts = [np.concatenate(each) for each in zip(*made, strict=True)]
    for place, part in reversed(list(enumerate(parts))):
        output.write(str(place), part)
