"""How work is divided over a cluster, and what a fit of DeGEM and a score take there, stage by stage.

As many columns a task as a worker's memory holds, and as many tasks as there are cores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from degem.detectors.degem.cost import energy_products
from degem.errors import DegemError, ParameterError
from degem.propagation.propagator import LINE

MEMORY_SHARE = 0.6  # of a worker's memory for columns: the rest is for mapped edges and the process
PROCESS_BYTES, MAP_BYTES = 400 << 20, 1 << 30  # of a worker's process, and of a task that maps rows
BLOCK_ROWS = 1 << 18  # rows of a task that maps rows: a multiple of the blocks within
# Rates of a core. Of a walk beyond all caches, as in docs/architecture.md: benchmarks/cluster.py has found it
# more than twice as fast at a million nodes. Of multiplications, as benchmarks/cluster.py has measured them. Assumed:
# bytes a second between a machine and the store, seconds of training.
PROPAGATED_PER_SECOND, MULTIPLIED_PER_SECOND = 0.9e9, 1.9e10
STORE_BYTES_PER_SECOND, TRAINING_SECONDS = 5e8, 20.0
DRIVER_BYTES = 24  # an entry of the adjacency, while the driver takes the training graph out of the whole one
UNITS = {"M": 2**20, "G": 2**30, "T": 2**40}


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


@dataclass(frozen=True)
class Sizes:
    """A graph, and what DeGEM makes of it."""

    nodes: int  # n
    entries: int  # m, of the adjacency: two an edge
    features: int  # d₀
    columns: int  # projected, r
    hops: Sequence[int]  # the hops that are looked at
    classes: int  # C
    terms: int = 7  # of the energy

    @property
    def edge_bytes(self) -> int:
        """What a machine maps: 4 bytes an entry, 8 a node."""
        return 4 * self.entries + 8 * (self.nodes + 1)


@dataclass(frozen=True)
class Stage:
    """What one stage takes."""

    name: str
    tasks: int
    read: float  # bytes from the store, edges once a machine
    written: float  # bytes to the store
    memory: float  # bytes of a task, without mapped edges
    seconds: float


def planned(sizes: Sizes, nodes: Sequence[Node], *, score_only: bool = False) -> list[Stage]:
    """The stages of a fit, or of a score.

    Example:
        >>> stages = planned(Sizes(10**6, 2 * 10**7, 128, 128, (0, 1, 2, 3, 5, 10), 10), [Node(1, 8 * 2**30)] * 2)
        >>> [(stage.name, stage.tasks) for stage in stages][:4]
        [('cut training graph', 1), ('share arrays', 1), ('walk of classes', 1), ('class means', 4)]
    """
    n, r, c = sizes.nodes, sizes.columns, max(sizes.classes, 1)
    kept, last = len(sizes.hops), sizes.hops[-1]
    blocks = math.ceil(n / BLOCK_ROWS)
    cores = min(blocks, sum(node.cpus for node in nodes))

    def walk(name: str, columns: int, num_hops: int, kept_hops: int, read: float, times: int = 1) -> Stage:
        layout = divided(n, columns, nodes)
        strips = math.ceil(columns / layout.columns)
        at_once = min(strips, sum(node.cpus // layout.cpus for node in nodes))
        lines = LINE * math.ceil(layout.columns / LINE)  # a column costs a line of memory
        each = num_hops * sizes.entries * lines / PROPAGATED_PER_SECOND / layout.cpus
        written = 4.0 * n * columns * kept_hops
        read += sizes.edge_bytes * min(strips, len(nodes))
        moving = (read + written) / min(strips, len(nodes)) / STORE_BYTES_PER_SECOND
        return Stage(
            name,
            times * strips,
            times * read,
            times * written,
            layout.memory,
            times * (each * math.ceil(strips / at_once) + moving),
        )

    def rows(name: str, read: float, written: float, products: float) -> Stage:
        seconds = products / MULTIPLIED_PER_SECOND / cores
        seconds += (read + written) / len(nodes) / STORE_BYTES_PER_SECOND
        return Stage(name, blocks, read, written, MAP_BYTES, seconds)

    features = 4.0 * n * sizes.features
    energies = energy_products(r, sizes.features)
    looking = rows("look at features", features, 4.0 * n * (r + 3), 2.0 * n * sizes.features * r)
    scoring = [
        looking,
        walk("propagate", r, last, kept, 4.0 * n * r),
        rows("score rows", 4.0 * n * (kept * r + 5), 4.0 * n * (sizes.terms + c), 2.0 * n * (kept * r * 64 + energies)),
        walk("smooth terms", sizes.terms, 8, 1, 4.0 * n * sizes.terms),
        walk("smooth classes", c, 1, 1, 4.0 * n * c),
    ]
    size = features + sizes.edge_bytes
    shared = Stage("share arrays", 1, 0.0, size, 0.0, size / STORE_BYTES_PER_SECOND)
    subgraph = DRIVER_BYTES * sizes.entries
    cut = Stage("cut training graph", 1, size, features, subgraph, 2 * size / STORE_BYTES_PER_SECOND)
    if score_only:
        return [shared, *scoring]
    learning = [
        walk("walk of classes", c, last, last + 1, 4.0 * n * c),
        rows("class means", features + 4.0 * n * c * (last + 1), 0.0, 2.0 * n * sizes.features * c * (last + 1)),
        looking,
        walk("sample hops", r, last, 0, 4.0 * n * r, times=2),  # of the pool, and of one corruption
        Stage("train", 1, 0.0, 0.0, 0.0, TRAINING_SECONDS),
    ]
    return [cut, shared, *learning, *scoring, shared, *scoring]  # the training graph, then the whole one


def cluster_of(nodes: int, cpus: int, memory: str) -> list[Node]:
    """So many machines alike.

    Example:
        >>> cluster_of(2, 4, "16G")
        [Node(cpus=4, memory=17179869184.0), Node(cpus=4, memory=17179869184.0)]
    """
    try:
        size = float(memory[:-1]) * UNITS[memory[-1:].upper()]
    except (KeyError, ValueError):
        raise ParameterError(f"--memory {memory}: write it as 128G (M, G or T)") from None
    return [Node(cpus, size)] * nodes
