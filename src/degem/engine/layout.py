"""How work is divided: as many columns a task as a worker's memory holds, and as many tasks as there are cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from degem.errors import DegemError
from degem.propagation.propagator import LINE

MEMORY_SHARE = 0.6  # of a worker's memory for columns: the rest is for mapped edges and the process
PROCESS_BYTES, MAP_BYTES = 400 << 20, 1 << 30  # of a worker's process, and of a task that maps rows
BLOCK_ROWS = 1 << 18  # rows of a task that maps rows: a multiple of the blocks within


@dataclass(frozen=True)
class Node:
    """A machine that works."""

    cpus: int
    memory: float  # the bytes that tasks may take there


@dataclass(frozen=True)
class Layout:
    """How columns are divided."""

    columns: int  # columns of a task, c
    cpus: int  # cores of a task
    memory: int  # the bytes a task takes, 8·n·c and its process, without mapped edges


def divided(num_nodes: int, width: int, nodes: Sequence[Node]) -> Layout:
    """The layout for columns over a graph: every core has work, whole lines of memory where they fit.

    Arguments:
        num_nodes: The nodes n of the graph.
        width: The columns r.
        nodes: The machines; the smallest counts.

    Example:
        >>> divided(111_000_000, 128, [Node(32, 128 * 2**30)] * 16)
        Layout(columns=16, cpus=32, memory=14627430400)
    """
    if not nodes:
        raise DegemError("the cluster has no node with a core to work on: start one, or wait for it")
    memory, cpus = min(node.memory for node in nodes), min(node.cpus for node in nodes)
    most = int(MEMORY_SHARE * memory / (8 * num_nodes))  # columns on their way at once on one machine
    if most < 1:
        raise DegemError(
            f"one column of {num_nodes:,} nodes takes {8 * num_nodes / 2**30:,.1f} GiB on its way, and a worker has "
            f"{memory / 2**30:,.1f} GiB: use workers with more memory"
        )
    even = math.ceil(width / sum(node.cpus for node in nodes))
    columns = min(width, most, LINE * math.ceil(even / LINE))
    if LINE < columns < width:
        columns -= columns % LINE
    at_once = min(cpus, most // columns, math.ceil(math.ceil(width / columns) / len(nodes)))
    return Layout(columns, max(1, cpus // at_once), 8 * num_nodes * columns + PROCESS_BYTES)
