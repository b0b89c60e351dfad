"""Hop features of graphs of any size: of a sample of nodes, or of all of them in memory or in a temporary file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.mapped import default_budget
from degem.ops.prefetch import LINE
from degem.ops.propagation import average, root_degrees
from degem.ops.scratch_file import ScratchFile
from degem.training import OnProgress, Progress, silent

BLOCK = 1 << 16
LITTLE = 1 << 26  # bytes that fit any machine: it is not asked
NOTHING = np.empty((0, 0, 0), dtype=np.float32)


@dataclass(frozen=True)
class HopSource:
    r"""What is propagated over which graph, and which hops of it are wanted.

    They come as :math:`D^{-1/2} X^{(\ell)}`, as they are made: who wants :math:`X^{(\ell)}` multiplies by
    :func:`~degem.ops.propagation.root_degrees`, who wants where a row points need not.

    Arguments:
        adjacency: The adjacency :math:`A`.
        block: Some rows and columns of :math:`X^{(0)}`, as a float32 array; both are given as slices.
        width: The number of columns :math:`r` of :math:`X^{(0)}`.
        hops: The hops :math:`\ell` wanted, in ascending order.
        self_weight: The weight :math:`\beta` of the node itself.
        memory_budget: MiB that hop features may take in memory; default: a quarter of what is free.
        on_progress: Told after each hop.

    Example:
        >>> pair = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
        >>> x = np.array([[1.0], [0.0]], dtype=np.float32)
        >>> source = HopSource(pair, lambda rows, columns: x[rows, columns], width=1, hops=(0, 2, 3))
        >>> source.sample(np.array([0]))[:, 0, 0]
        array([1., 1., 0.], dtype=float32)
    """

    adjacency: sp.csr_array
    block: Callable[[slice, slice], NDArray[np.float32]]
    width: int
    hops: Sequence[int]
    self_weight: float = 0.0
    memory_budget: float | None = None
    on_progress: OnProgress = silent

    @property
    def num_nodes(self) -> int:
        """The number of nodes n."""
        return int(self.adjacency.shape[0])

    @property
    def budget_bytes(self) -> float:
        """The memory budget in bytes."""
        return 2**20 * (default_budget() if self.memory_budget is None else self.memory_budget)

    @property
    def columns_at_once(self) -> int:
        """How many columns are propagated together: two arrays of them fit the budget."""
        most = max(1, min(self.width, int(self.budget_bytes // (8 * self.num_nodes))))
        even = math.ceil(self.width / math.ceil(self.width / most))
        whole_lines = LINE * math.ceil(even / LINE)
        return whole_lines if whole_lines <= most else even

    def fits(self, num_bytes: int) -> bool:
        """Whether an array fits the budget."""
        return (self.memory_budget is None and num_bytes <= LITTLE) or num_bytes <= self.budget_bytes

    def sample(self, nodes: NDArray[np.int64], permutation: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """Hop features of some nodes over the roots of their degrees, of shape (hops, len(nodes), r).

        Arguments:
            nodes: The nodes.
            permutation: If given, the rows of :math:`X^{(0)}` are reordered by it first: a corrupted graph.
        """
        found = np.empty((len(self.hops), len(nodes), self.width), dtype=np.float32)
        for hop, columns, values in self.walk(permutation):
            if hop in self.hops:
                place = self.hops.index(hop)
                np.take(values, nodes, axis=0, out=found[place, :, columns], mode="clip")  # else it makes a copy
        return found

    def walk(
        self, permutation: NDArray[np.int64] | None = None, *, into: NDArray[np.float32] | None = None
    ) -> Iterator[tuple[int, slice, NDArray[np.float32]]]:
        r"""Every hop, wanted or not, as many columns at a time as the budget allows: hop, columns, their values.

        The values, of shape (n, columns), are :math:`D^{-1/2} X^{(\ell)}`. They are read while the next hop is
        made, and overwritten by the one after it.

        Arguments:
            permutation: See :meth:`sample`.
            into: An array in memory of shape (hops, n, r), where all columns of the wanted hops are written and stay.
        """
        parts = list(_spans(self.width, self.columns_at_once if into is None else self.width))
        homes = {} if into is None else dict(zip(self.hops, into, strict=True))
        root = root_degrees(self.adjacency)
        for index, columns in enumerate(parts):
            for hop, values in self._walk_columns(columns, root, permutation, homes):
                done, total = index * self.hops[-1] + hop, len(parts) * self.hops[-1]
                self.on_progress(Progress("propagate", done, total, rows=done * self.num_nodes))
                yield hop, columns, values

    def _walk_columns(
        self,
        columns: slice,
        root: NDArray[np.float32],
        permutation: NDArray[np.int64] | None,
        homes: Mapping[int, NDArray[np.float32]],
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Every hop of some columns, wanted or not: in its home, or in one of two arrays in turn."""
        spare: list[NDArray[np.float32]] = []

        def room(hop: int) -> NDArray[np.float32]:
            if hop in homes:
                return homes[hop]
            return spare.pop() if spare else np.empty((self.num_nodes, columns.stop - columns.start), dtype=np.float32)

        current = room(0)
        if permutation is None:
            for rows in _spans(self.num_nodes, BLOCK):
                np.divide(self.block(rows, columns), root[rows], out=current[rows])
        else:
            whole = room(-1)
            for rows in _spans(self.num_nodes, BLOCK):
                whole[rows] = self.block(rows, columns)
            np.take(whole, permutation, axis=0, out=current, mode="clip")
            current /= root
            spare.append(whole)
        yield 0, current
        for hop in range(1, self.hops[-1] + 1):
            target = room(hop)
            average(self.adjacency, current, self_weight=self.self_weight, out=target)
            if hop - 1 not in homes:
                spare.append(current)
            current = target
            yield hop, current


class HopStore:
    """The wanted hop features of every node, of shape (hops, n, r): in memory, or in files beyond the budget.

    Both homes hold the same bits, over the roots of degrees as in :class:`HopSource`.

    Arguments:
        source: What is propagated.
        sampled: Nodes whose hop features are also wanted by themselves, as ``sample`` of shape (hops, k, r).

    Example:
        >>> pair = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
        >>> x = np.array([[1.0], [0.0]], dtype=np.float32)
        >>> source = HopSource(pair, lambda rows, columns: x[rows, columns], width=1, hops=(0, 2, 3))
        >>> with HopStore(source) as store:
        ...     [block[:, 0, 0] for _, block in store.blocks(1)], store.on_disk
        ([array([1., 1., 0.], dtype=float32), array([0., 0., 1.], dtype=float32)], False)
    """

    def __init__(self, source: HopSource, sampled: NDArray[np.int64] | None = None) -> None:
        self.shape = (len(source.hops), source.num_nodes, source.width)
        self.on_disk = not source.fits(4 * math.prod(self.shape))
        nodes = np.empty(0, dtype=np.int64) if sampled is None else sampled
        self.sample = np.empty((self.shape[0], len(nodes), source.width), dtype=np.float32)
        self._whole = NOTHING
        self._files: list[tuple[slice, ScratchFile]] = []  # some columns each, of shape (hops, n, columns)
        if self.on_disk:
            self._write(source, nodes)
        else:
            self._whole = np.empty(self.shape, dtype=np.float32)
            for _ in source.walk(into=self._whole):
                pass
            np.take(self._whole, nodes, axis=1, out=self.sample, mode="clip")

    def blocks(self, block_rows: int = BLOCK) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Every node's hop features in order: pairs of the first node and an array of shape (hops, block, r).

        From memory the array is a view; from files the next one is read while this one is worked on.
        """
        spans = list(_spans(self.shape[1], block_rows))
        for rows, block in zip(spans, self._read_ahead(spans) if self.on_disk else map(self._view, spans), strict=True):
            yield rows.start, block

    def close(self) -> None:
        """Free the memory or the disk."""
        self._whole = NOTHING
        while self._files:
            self._files.pop()[1].close()

    def _write(self, source: HopSource, nodes: NDArray[np.int64]) -> None:
        """Columns that are propagated together have a file of their own: it is then written from start to end.

        A hop is written while the next one is made.
        """
        with ThreadPoolExecutor(1) as writer:
            writing: list[Future[None]] = []
            for hop, columns, values in source.walk():
                _finish(writing)  # the next hop takes the place of the one before
                if hop in source.hops:
                    if hop == source.hops[0]:
                        self._files.append((columns, ScratchFile()))
                    self.sample[source.hops.index(hop), :, columns] = values[nodes]
                    writing.append(writer.submit(self._files[-1][1].append, values))
                if hop == source.hops[-1]:
                    _finish(writing)
                    self._files[-1][1].finish()

    def _view(self, rows: slice) -> NDArray[np.float32]:
        return self._whole[:, rows]

    def _read_ahead(self, spans: Sequence[slice]) -> Iterator[NDArray[np.float32]]:
        with ThreadPoolExecutor(1) as reader:
            coming = reader.submit(self._read, spans[0])
            for after in spans[1:]:
                block, coming = coming.result(), reader.submit(self._read, after)
                yield block
            yield coming.result()

    def _read(self, rows: slice) -> NDArray[np.float32]:
        block = np.empty((self.shape[0], rows.stop - rows.start, self.shape[2]), dtype=np.float32)
        for columns, file in self._files:
            for hop, found in enumerate(block):
                file.read((hop * self.shape[1] + rows.start) * (columns.stop - columns.start), found[:, columns])
        return block

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _finish(writing: list[Future[None]]) -> None:
    while writing:
        writing.pop().result()


def _spans(num_rows: int, block_rows: int) -> Iterator[slice]:
    for start in range(0, num_rows, block_rows):
        yield slice(start, min(start + block_rows, num_rows))
