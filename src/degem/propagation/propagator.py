"""What every propagator does, whether it works in memory, out of core or on several machines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.neighbours import average
from degem.training import OnProgress, Progress, silent

BLOCK = 1 << 16  # rows that are made at once


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


class KeptHops(ABC):
    """Some hops of all columns, to be read by blocks of rows: a context that frees them at its end.

    Arguments:
        sample: The hops of the nodes that were asked for by themselves, of shape (hops, k, r).
    """

    def __init__(self, sample: NDArray[np.float32]) -> None:
        self.sample = sample

    @abstractmethod
    def blocks(self, block_rows: int = BLOCK) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Every node in order: pairs of the first node and an array of shape (hops, block, r)."""

    @abstractmethod
    def close(self) -> None:
        """Free the memory or the disk."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Propagator(ABC):
    r"""Propagates columns over a graph: :math:`V^{(\ell)} = \beta V^{(\ell-1)} + w\,D^{-1} A V^{(\ell-1)}`.

    That is all propagation there is: smoothing as it stands, the symmetric
    :math:`S = \beta I + D^{-1/2} A D^{-1/2} = D^{1/2} (\beta I + D^{-1} A) D^{-1/2}` with columns over the roots of
    degrees, :func:`~degem.ops.neighbours.root_degrees`. Columns travel independently, so that an engine can give strips
    of them to several workers. Whatever the propagator, the values are the same bits.

    Arguments:
        on_progress: Told after each hop.
    """

    def __init__(self, on_progress: OnProgress = silent) -> None:
        self.on_progress = on_progress

    @abstractmethod
    def columns_at_once(self, num_nodes: int, width: int) -> int:
        """How many of the columns travel together."""

    @abstractmethod
    def keep(
        self,
        adjacency: sp.csr_array,
        columns: Columns,
        hops: Sequence[int],
        *,
        sampled: NDArray[np.int64] | None = None,
    ) -> KeptHops:
        """Walk with :math:`β = 0` and keep some hops, in ascending order.

        Arguments:
            adjacency: The adjacency :math:`A`.
            columns: What is propagated.
            hops: The hops to keep.
            sampled: Nodes whose hops are also wanted by themselves.
        """

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
        homes: Mapping[int, NDArray[np.float32]],
    ) -> Iterator[HopBlock]:
        """The hops, in arrays of their own where ``homes`` has one, else in two arrays in turn."""
        num_nodes = int(adjacency.shape[0])
        strips = list(spans(columns.width, self.columns_at_once(num_nodes, columns.width)))
        for index, strip in enumerate(strips):
            spare: list[NDArray[np.float32]] = []
            values = None
            for hop in range(num_hops + 1):
                if hop in homes:
                    target = homes[hop][:, strip]
                else:
                    target = spare.pop() if spare else np.empty((num_nodes, strip.stop - strip.start), np.float32)
                if values is None:
                    columns.write(strip, target)
                else:
                    average(adjacency, values, self_weight=self_weight, weight=weight, out=target)
                    if hop - 1 not in homes:
                        spare.append(values)
                values = target
                done = index * num_hops + hop
                self.on_progress(Progress("propagate", done, len(strips) * num_hops, rows=done * num_nodes))
                yield HopBlock(hop, strip, values)


def spans(length: int, step: int) -> Iterator[slice]:
    """Slices that cover a length.

    Example:
        >>> list(spans(5, 3))
        [slice(0, 3, None), slice(3, 5, None)]
    """
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))
