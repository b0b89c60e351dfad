"""The engine: stages of tasks on a Ray cluster, whose outputs lie in a store and are never made twice."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
import re
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.engine.packing import packed
from degem.engine.plan import BLOCK_ROWS, MAP_BYTES, Layout, Node, divided
from degem.engine.stages import map_block, run_task, walk
from degem.engine.store import Publisher, Store, Stored, forget
from degem.errors import DegemError, one_line
from degem.extras import needs_extra
from degem.model_file import FORMAT_VERSION
from degem.ops.mapped import BLOCK
from degem.ops.neighbours import is_weighted
from degem.propagation import propagating_by
from degem.propagation.propagator import Columns, KeptHops, Parts, Propagator, num_rows, spans
from degem.training import OnProgress, Progress, silent

with needs_extra("ray", "the engine"):
    import ray
    from ray import exceptions
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

TRIES = 4  # of a task whose worker or node is lost
PATIENCE = 60.0  # seconds to wait for a node that has room for a task
POLL = 2.0
AHEAD = 2  # tasks handed in for each that can run
OBJECT_STORE = 200 << 20  # bytes of Ray's own store, of a cluster started here: arrays go by way of ours
LOST = (
    exceptions.WorkerCrashedError,
    exceptions.NodeDiedError,
    exceptions.OutOfMemoryError,
    exceptions.ObjectLostError,
)


@dataclass(frozen=True)
class Work:
    """Tasks that differ in a span of columns or rows alone."""

    phase: str  # for progress, and the names of tasks
    stage: Callable[..., None]  # is called with ``shared``, the span and where the output goes
    shared: tuple[Any, ...]  # what all tasks are given
    spans: Sequence[slice]  # the columns, or rows, of each task
    last: str  # the part of its output that a task writes last
    cpus: int = 1  # cores of a task
    memory: int = 0  # bytes of a task


@dataclass
class Ray:
    """Inside this context, fits and scores propagate and map rows on a Ray cluster; hops are the bits of one machine.

    What a task makes goes to the store under a checksum of all that it is made of. A run that was stopped, however,
    finds there what is done when it is repeated; the store may be deleted when the run is.

    Arguments:
        store: A folder that every node sees, or a URI such as ``s3://bucket/folder``: see :class:`~degem.engine.Store`.
        address: ``local`` starts Ray here, ``auto`` finds it, ``ray://host:10001`` or ``host:6379`` is elsewhere.
        on_progress: Told after each task.

    Example:
        >>> from degem import DeGEM
        >>> with Ray(store="/mnt/shared/run", address="auto"):  # doctest: +SKIP
        ...     detector = DeGEM().fit(graph)
        ...     scores = detector.decision_function(graph)
    """

    store: str
    address: str = "local"
    on_progress: OnProgress = silent
    moved: Counter[str] = field(default_factory=Counter, init=False)

    def __enter__(self) -> Self:
        self._place = Store(self.store)
        self._publisher = Publisher(self._place)
        self._leave = contextlib.ExitStack()
        self._leave.enter_context(connected(self.address))
        self._leave.enter_context(propagating_by(lambda listener: RayPropagator(self, listener)))
        return self

    def __exit__(self, *error: object) -> None:
        with self._leave:
            if self.folder is None:
                _everywhere(forget, self.store)
                forget(self.store)

    def layout(self, num_nodes: int, width: int) -> Layout:
        """How columns of a graph are divided: as the first run into this store did."""
        name = f"layout/{num_nodes}-{width}"
        now = divided(num_nodes, width, nodes())
        if not self._place.has(name):
            self._place.write(name, np.array([now.columns, now.memory]))
        columns, memory = self._place.rows(name, slice(None)).tolist()
        return Layout(columns, now.cpus, memory)

    @property
    def folder(self) -> Path | None:
        """The store, if it is a folder."""
        return self._place.folder

    def stored(self, name: str) -> Stored:
        """An array of the store."""
        return Stored(self._place, name)

    def parts(self, prefix: str) -> int:
        """How many arrays there are whose names begin so."""
        return sum(name.startswith(prefix) for name in self._place.names(prefix.rpartition("/")[0] + "/"))

    def run(self, work: Work, on_progress: OnProgress) -> list[str]:
        """Do what is not done yet; the prefixes of the outputs, one a span."""
        content = packed((work.stage, work.shared), self._publisher)
        digest = hashlib.sha256(f"{version('degem')} {FORMAT_VERSION} ".encode() + content)  # of another code another
        folder = f"{work.phase.replace(' ', '-')}-{digest.hexdigest()[:24]}/"
        prefixes = [f"{folder}{span.start}-{span.stop}-" for span in work.spans]
        there = self._place.names(folder)
        todo = deque(span for span, prefix in zip(work.spans, prefixes, strict=True) if prefix + work.last not in there)
        done, rows = len(work.spans) - len(todo), 0
        on_progress(Progress(work.phase, done, len(work.spans)))
        if not todo:
            return prefixes
        task, tries = ray.remote(run_task), Counter[int]()
        shared, running = ray.put(content), dict[Any, slice]()
        waiting_since = time.monotonic()
        try:
            while todo or running:
                alive = nodes()
                room = max(1, sum(node.cpus // work.cpus for node in alive))
                while todo and len(running) < AHEAD * room:
                    span = todo.popleft()
                    asked = task.options(
                        name=f"{work.phase} {span.start}-{span.stop}",
                        num_cpus=work.cpus,
                        memory=work.memory,
                        max_retries=0,  # counted here
                    )
                    reference = asked.remote(shared, folder, (span.start, span.stop), self.store, work.cpus)
                    running[reference] = span
                ready, _ = ray.wait(list(running), timeout=POLL)
                if ready or any(node.cpus >= work.cpus and node.memory >= work.memory for node in alive):
                    waiting_since = time.monotonic()
                elif time.monotonic() - waiting_since > PATIENCE:
                    raise DegemError(
                        f"no node of the cluster has {work.cpus} cores and {work.memory / 2**30:,.1f} GiB for "
                        f"{work.phase!r}: add one and run the same command again, which goes on from here"
                    )
                for reference in ready:
                    span = running.pop(reference)
                    bytes_moved = _result(reference, work.phase, span, tries)
                    if bytes_moved is None:
                        todo.append(span)
                        continue
                    done, rows = done + 1, rows + span.stop - span.start
                    self.moved.update({f"{work.phase} {way}": size for way, size in bytes_moved.items()})
                    gib = {"GiB": self.moved.total() / 2**30}
                    on_progress(Progress(work.phase, done, len(work.spans), gib, rows))
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
        return prefixes


class RayPropagator(Propagator):
    """Propagation by strips of columns, and maps over rows, as tasks."""

    remote = True

    def __init__(self, engine: Ray, on_progress: OnProgress) -> None:
        super().__init__(on_progress=engine.on_progress if on_progress is silent else on_progress)
        self.engine = engine

    def columns_at_once(self, num_nodes: int, width: int) -> int:
        """The columns of a task."""
        return self.engine.layout(num_nodes, width).columns

    def keep(
        self,
        adjacency: sp.csr_array,
        columns: Columns,
        hops: Sequence[int],
        *,
        self_weight: float = 0.0,
        weight: float = 1.0,
    ) -> KeptHops:
        """Some hops, kept in the store."""
        hops = list(hops)
        strips, prefixes = self._walked("propagate", adjacency, columns, hops, (self_weight, weight, None))
        return StoredHops(self.engine.stored, strips, prefixes, hops, int(adjacency.shape[0]))

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
        how = (self_weight, 1.0, np.asarray(nodes, dtype=np.int64))
        _, prefixes = self._walked("sample", adjacency, columns, list(hops), how)
        return np.concatenate([self.engine.stored(prefix + "sample")[:] for prefix in prefixes], axis=2)

    def map_rows(self, function: Callable[..., Parts], *sources: Any, block_rows: int = BLOCK) -> Iterator[Any]:
        """What a function makes of blocks of rows, in order, as arrays in the store."""
        rows = list(spans(num_rows(sources[0]), BLOCK_ROWS))
        work = Work("map rows", map_block, (function, sources, block_rows), rows, "0", memory=MAP_BYTES)
        for prefix in self.engine.run(work, self.on_progress):
            parts = self.engine.parts(prefix)
            yield tuple(self.engine.stored(f"{prefix}{place}") for place in range(parts))

    def _walked(
        self, phase: str, adjacency: sp.csr_array, columns: Columns, hops: list[int], how: tuple[Any, ...]
    ) -> tuple[list[slice], list[str]]:
        num_nodes = int(adjacency.shape[0])
        layout = self.engine.layout(num_nodes, columns.width)
        strips, last = list(spans(columns.width, layout.columns)), str(hops[-1]) if phase == "propagate" else "sample"
        shared = (_light(adjacency), columns, hops, *how)
        work = Work(phase, walk, shared, strips, last, layout.cpus, layout.memory)
        return strips, self.engine.run(work, self.on_progress)


class StoredHops(KeptHops):
    """Some hops in the store, to be read by rows where they are needed: an array a strip of columns and a hop."""

    def __init__(
        self, stored: Callable[[str], Stored], strips: list[slice], prefixes: list[str], hops: list[int], num_nodes: int
    ) -> None:
        super().__init__([])
        self._num_nodes = num_nodes
        self._width = strips[-1].stop
        self._arrays = [
            (place, strip, stored(f"{prefix}{hop}"))
            for strip, prefix in zip(strips, prefixes, strict=True)
            for place, hop in enumerate(hops)
        ]
        self._num_hops = len(hops)

    @property
    def num_nodes(self) -> int:
        """The number of nodes n."""
        return self._num_nodes

    def rows(self, rows: slice) -> NDArray[np.float32]:
        """Some nodes, of shape (hops, nodes, r)."""
        block = np.empty((self._num_hops, rows.stop - rows.start, self._width), dtype=np.float32)
        for place, strip, array in self._arrays:
            block[place, :, strip] = array[rows]
        return block


def _light(adjacency: sp.csr_array) -> sp.csr_array:
    """The adjacency, with one number for all weights where they are ones."""
    light = copy.copy(adjacency)
    if not is_weighted(adjacency):
        light.data = np.broadcast_to(np.float32(1), adjacency.indices.shape)
    return light


@contextlib.contextmanager
def connected(address: str) -> Iterator[None]:
    """A connection to a cluster, or one that is there already; a cluster that is started here ends with it."""
    if ray.is_initialized():
        yield
        return
    if found := re.fullmatch(r"(?:ray://)?([^:/]+):(\d+)", address):  # Ray itself would wait for minutes
        try:
            socket.create_connection((found[1], int(found[2])), timeout=PATIENCE / 6).close()
        except OSError as error:
            raise DegemError(
                f"--address {address}: nothing answers there ({error}): start Ray, or correct it"
            ) from None
    options: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address == "local":
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE}
    before = os.environ.get("RAY_USAGE_STATS_ENABLED")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reads it when it starts
    try:
        ray.init(address, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise DegemError(
            f"--address {address}: there is no Ray cluster to be reached ({one_line(error)[:200]})"
        ) from None
    finally:
        if before is None:
            del os.environ["RAY_USAGE_STATS_ENABLED"]
    try:
        yield
    finally:
        ray.shutdown()


def nodes() -> list[Node]:
    """The machines of the cluster that have cores, as they are now."""
    alive = [node["Resources"] for node in _machines()]
    return [Node(int(found["CPU"]), found.get("memory", 0.0)) for found in alive if found.get("CPU", 0) >= 1]


def _everywhere(function: Callable[[str], None], argument: str) -> None:
    """Call a function on every machine."""
    places = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=True) for node in _machines()]
    task = ray.remote(function)
    calls = [task.options(num_cpus=0, scheduling_strategy=place).remote(argument) for place in places]
    ray.wait(calls, num_returns=len(calls), timeout=PATIENCE)


def _machines() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ray.nodes()
    return [node for node in found if node["Alive"]]


def _result(reference: Any, phase: str, span: slice, tries: Counter[int]) -> Counter[str] | None:
    """The bytes that a task moved; None where it was lost and shall be tried again."""
    name = f"{phase} {span.start}-{span.stop}"
    try:
        result: Counter[str] = ray.get(reference)
    except LOST as error:
        tries[span.start] += 1
        if tries[span.start] < TRIES:
            return None
        reason = "too little memory" if isinstance(error, exceptions.OutOfMemoryError) else "lost workers"
        raise DegemError(
            f"{name} failed {TRIES} times for {reason}: run the same command again, which goes on from here, on nodes "
            f"with more memory or with fewer cores ({one_line(error)[:200]})"
        ) from None
    except exceptions.RayTaskError as error:
        if isinstance(error.cause, DegemError):
            raise DegemError(f"{name}: {error.cause}") from None
        raise
    return result
