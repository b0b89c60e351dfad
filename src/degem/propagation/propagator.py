"""Columns of node values on their way over a graph, hop by hop, in memory or within a budget."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.mapped import is_mapped, release
from degem.ops.neighbours import average
from degem.training import OnProgress, Progress, silent

BLOCK = 1 << 16  # rows that are made at once
LINE = 16  # numbers that the processor takes from memory at once
Parts = tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class Columns:
    r"""Node values :math:`X` of shape :math:`(n, r)` that need not exist all at once: a propagator asks for a strip.

    Arguments:
        width: The number of columns :math:`r`.
        write: Writes some columns, given as a slice, of every row into an array.

    Example:
        >>> columns = Columns.of(np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32))
        >>> strip = np.empty((2, 1), dtype=np.float32)
        >>> halved = columns.permuted(np.array([1, 0])).over(np.array([[2.0], [2.0]], dtype=np.float32))
        >>> halved.write(slice(1, 2), strip)
        >>> strip.ravel()
        array([2., 1.], dtype=float32)
    """

    width: int
    write: Callable[[slice, NDArray[np.float32]], None]

    @classmethod
    def of(cls, values: NDArray[np.float32]) -> Columns:
        """The columns of an array."""

        def write(columns: slice, out: NDArray[np.float32]) -> None:
            out[:] = values[:, columns]

        return cls(values.shape[1], write)

    @classmethod
    def by_block(cls, width: int, block: Callable[[slice, slice], NDArray[np.float32]]) -> Columns:
        """Columns made from blocks: ``block`` gives some rows and some columns, both as slices."""

        def write(columns: slice, out: NDArray[np.float32]) -> None:
            for rows in spans(len(out), BLOCK):
                out[rows] = block(rows, columns)

        return cls(width, write)

    @classmethod
    def by_strip(cls, strips: Sequence[slice], blocks: Sequence[Sequence[Any]]) -> Columns:
        """Columns that lie in strips, each of these in blocks of rows: ``blocks`` has a part a strip for each block.

        They can be asked for by whole strips only.
        """

        def write(columns: slice, out: NDArray[np.float32]) -> None:
            place, start = strips.index(columns), 0
            for block in blocks:
                part = np.asarray(block[place])
                out[start : start + len(part)] = part
                start += len(part)

        return cls(strips[-1].stop, write)

    def permuted(self, order: NDArray[np.int64]) -> Columns:
        """The same columns, their rows reordered."""

        def write(columns: slice, out: NDArray[np.float32]) -> None:
            before = np.empty_like(out)
            self.write(columns, before)
            np.take(before, order, axis=0, out=out, mode="clip")  # else it makes a copy

        return Columns(self.width, write)

    def over(self, divisor: NDArray[np.float32]) -> Columns:
        """The same columns, each row divided by a number of its own, given in shape (n, 1)."""

        def write(columns: slice, out: NDArray[np.float32]) -> None:
            self.write(columns, out)
            np.divide(out, divisor, out=out)

        return Columns(self.width, write)


@dataclass(frozen=True)
class HopBlock:
    """Some columns of one hop.

    Arguments:
        hop: The hop; 0 is where the walk begins.
        columns: Which columns.
        values: Their values of every node, of shape (n, columns): to be read before the next block is asked for but
            one, whose values may take their place.
    """

    hop: int
    columns: slice
    values: NDArray[np.float32]


class KeptHops:
    """Some hops of all columns, to be read by blocks of rows: a context that frees them at its end.

    Arguments:
        strips: Columns that travelled together and their hops, of shape (hops, n, columns).
    """

    def __init__(self, strips: list[tuple[slice, NDArray[np.float32]]]) -> None:
        self._strips = strips

    @property
    def num_nodes(self) -> int:
        """The number of nodes n."""
        return int(self._strips[0][1].shape[1])

    def rows(self, rows: slice) -> NDArray[np.float32]:
        """Some nodes, of shape (hops, nodes, r)."""
        parts = [values[:, rows] for _, values in self._strips]
        block = np.concatenate(parts, axis=2) if is_mapped(parts[0]) else parts[0]
        for _, values in self._strips:
            release(values)
        return block

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the memory, or give the disk back."""
        self._strips = []


class Propagator:
    r"""Propagates columns over a graph: :math:`V^{(\ell)} = \beta V^{(\ell-1)} + w\,D^{-1} A V^{(\ell-1)}`.

    That is all propagation there is: smoothing as it stands, the symmetric
    :math:`S = \beta I + D^{-1/2} A D^{-1/2} = D^{1/2} (\beta I + D^{-1} A) D^{-1/2}` with columns over the roots of
    degrees, :func:`~degem.ops.neighbours.root_degrees`. Columns travel independently, so that an engine, a
    subclass, can give strips of them to several workers. The values are always the same bits.

    Arguments:
        budget_bytes: What two arrays of columns may take. By default all columns travel together, and kept hops are in
            memory; else a few travel at a time, and kept hops are in temporary files.
        on_progress: Told after each hop.

    Example:
        >>> pair = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
        >>> columns = Columns.of(np.array([[1.0], [0.0]], dtype=np.float32))
        >>> [block.values.ravel().tolist() for block in Propagator().hops(pair, columns, 2, self_weight=0.5)]
        [[1.0, 0.0], [0.5, 1.0], [1.25, 1.0]]
        >>> with Propagator(16).keep(pair, Columns.of(np.eye(2, dtype=np.float32)), (0, 2, 3)) as kept:
        ...     kept.rows(slice(0, 1))[:, 0, 0]
        array([1., 1., 0.], dtype=float32)
    """

    remote = False  # whether rows and columns are worked on elsewhere

    def __init__(self, budget_bytes: float = math.inf, on_progress: OnProgress = silent) -> None:
        self.budget_bytes, self.on_progress = budget_bytes, on_progress

    def map_rows(self, function: Callable[..., Parts], *sources: Any, block_rows: int = BLOCK) -> Iterator[Parts]:
        """What a function makes of blocks of rows, in order.

        An engine calls it elsewhere, and puts what it makes of several blocks one behind the other.

        Arguments:
            function: Given some rows of each source, it returns arrays; it depends on nothing else.
            sources: Arrays of n rows, dense or CSR, or kept hops.
            block_rows: Rows at a time.

        Example:
            >>> blocks = Propagator().map_rows(lambda rows: (rows.sum(axis=1),), np.eye(3), block_rows=2)
            >>> [total.tolist() for (total,) in blocks]
            [[1.0, 1.0], [1.0]]
        """
        for rows in spans(num_rows(sources[0]), block_rows):
            yield function(*(taken(source, rows) for source in sources))

    def strips(self, num_nodes: int, width: int) -> list[slice]:
        """The columns that travel together."""
        return list(spans(width, self.columns_at_once(num_nodes, width)))

    @property
    def out_of_core(self) -> bool:
        """Whether kept hops are in temporary files."""
        return self.budget_bytes < math.inf

    def columns_at_once(self, num_nodes: int, width: int) -> int:
        """How many columns travel together: all, or parts of one size, of whole lines of memory where they fit."""
        if not self.out_of_core:
            return width
        most = max(1, min(width, int(self.budget_bytes // (8 * num_nodes))))
        even = math.ceil(width / math.ceil(width / most))
        whole_lines = LINE * math.ceil(even / LINE)
        return whole_lines if whole_lines <= most else even

    def keep(
        self,
        adjacency: sp.csr_array,
        columns: Columns,
        hops: Sequence[int],
        *,
        self_weight: float = 0.0,
        weight: float = 1.0,
    ) -> KeptHops:
        r"""Walk, and keep some hops, in ascending order.

        Arguments:
            adjacency: The adjacency :math:`A`.
            columns: What is propagated.
            hops: The hops to keep.
            self_weight: The weight :math:`\beta` of the node itself.
            weight: The weight :math:`w` of the mean of its neighbours.
        """
        num_nodes = int(adjacency.shape[0])
        if not self.out_of_core:
            whole = np.empty((len(hops), num_nodes, columns.width), dtype=np.float32)
            targets = dict(zip(hops, whole, strict=True))
            for _ in self._walk(adjacency, columns, hops[-1], self_weight, weight, targets):
                pass
            return KeptHops([(slice(None), whole)])
        strips: list[tuple[slice, NDArray[np.float32]]] = []
        for block in self.hops(adjacency, columns, hops[-1], self_weight=self_weight, weight=weight):
            if block.hop in hops:
                place = hops.index(block.hop)
                if place == 0:
                    strips.append((block.columns, _on_disk((len(hops), *block.values.shape))))
                strips[-1][1][place] = block.values
                release(strips[-1][1])
        return KeptHops(strips)

    def hops(
        self,
        adjacency: sp.csr_array,
        columns: Columns,
        num_hops: int,
        *,
        self_weight: float = 0.0,
        weight: float = 1.0,
    ) -> Iterator[HopBlock]:
        r"""The hops 0, …, L of some columns, then of the next ones.

        Arguments:
            adjacency: The adjacency :math:`A`, symmetric, ones, no self-loops.
            columns: What is propagated.
            num_hops: The number of hops :math:`L`.
            self_weight: The weight :math:`\beta` of the node itself.
            weight: The weight :math:`w` of the mean of its neighbours; isolated nodes have none.
        """
        return self._walk(adjacency, columns, num_hops, self_weight, weight, {})

    def sample(
        self,
        adjacency: sp.csr_array,
        columns: Columns,
        hops: Sequence[int],
        nodes: NDArray[np.int64],
        *,
        self_weight: float = 0.0,
    ) -> NDArray[np.float32]:
        """Some hops of some nodes, of shape (hops, nodes, r)."""
        sample = np.empty((len(hops), len(nodes), columns.width), dtype=np.float32)
        for block in self.hops(adjacency, columns, hops[-1], self_weight=self_weight):
            if block.hop in hops:
                rows = sample[hops.index(block.hop), :, block.columns]
                np.take(block.values, nodes, axis=0, out=rows, mode="clip")
        return sample

    def _walk(
        self,
        adjacency: sp.csr_array,
        columns: Columns,
        num_hops: int,
        self_weight: float,
        weight: float,
        targets: Mapping[int, NDArray[np.float32]],
    ) -> Iterator[HopBlock]:
        """The hops, in arrays of their own where ``targets`` has one, else in two arrays in turn."""
        num_nodes = int(adjacency.shape[0])
        strips = self.strips(num_nodes, columns.width)
        for index, strip in enumerate(strips):
            spare: list[NDArray[np.float32]] = []
            values = None
            for hop in range(num_hops + 1):
                if hop in targets:
                    target = targets[hop][:, strip]
                else:
                    target = spare.pop() if spare else np.empty((num_nodes, strip.stop - strip.start), np.float32)
                if values is None:
                    columns.write(strip, target)
                else:
                    average(adjacency, values, self_weight=self_weight, weight=weight, out=target)
                    if hop - 1 not in targets:
                        spare.append(values)
                values = target
                done = index * num_hops + hop
                self.on_progress(Progress("propagate", done, len(strips) * num_hops, rows=done * num_nodes))
                yield HopBlock(hop, strip, values)


def num_rows(source: Any) -> int:
    """The rows of an array, or the nodes of kept hops."""
    return source.num_nodes if isinstance(source, KeptHops) else source.shape[0]


def taken(source: Any, rows: slice) -> Any:
    """Some rows of an array, or of kept hops; what was read of a memory map before is let go of."""
    if isinstance(source, KeptHops):
        return source.rows(rows)
    release(source)
    whole = rows.start == 0 and rows.stop >= source.shape[0]
    return source if whole else source[rows]  # SciPy copies a slice


def _on_disk(shape: tuple[int, ...]) -> np.memmap:
    with tempfile.TemporaryFile(prefix="degem-hops-") as file:  # it has no name, and goes with the map
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)


def spans(length: int, step: int) -> Iterator[slice]:
    """Slices that cover a length.

    Example:
        >>> list(spans(5, 3))
        [slice(0, 3, None), slice(3, 5, None)]
    """
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))
