"""The service without its paths: one thread that writes, and snapshots that readers see."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.data.archives import read_npz, write_npz
from degem.data.fingerprint import fingerprint
from degem.detectors.base import Detector
from degem.errors import DegemError, quoted
from degem.explain import class_names
from degem.graph import Graph
from degem.serve.events import AddEdge, AddNode, Batch, RemoveNode, UpdateNode
from degem.serve.live_graph import NAMES, LiveGraph
from degem.serve.rows import NewRow
from degem.serve.scoring import Scored, Scoring, scoring_of
from degem.serve.store import Arrival, EventStore

LOGGER = logging.getLogger("degem.serve")
POLL = 0.5  # seconds after which events of other servers are looked for
AT_ONCE = 200  # batches that are refreshed together
SNAPSHOTS_KEPT = 2


class EventError(DegemError):
    """An event names a node that is not there, or one that is there already, or has too few features."""


class UnavailableError(DegemError):
    """The service cannot take events or has no scores."""


@dataclass(frozen=True)
class Settings:
    """How a service decides and how often it tidies up.

    Arguments:
        alpha: The false-alarm rate of flags.
        fdr: The false discovery rate over the stream of arrivals.
        tolerance: How much of a row's length a change may have and still be left out, until the next full refresh.
        full_every: Seconds after which the graph, if it has changed, is scored as a whole and written to the disk.
    """

    alpha: float = 0.05
    fdr: float = 0.1
    tolerance: float = 1e-3
    full_every: float = 600.0


@dataclass(frozen=True)
class Snapshot:
    """The graph and its scores as of an event: what readers see. It never changes; only ids behind its rows are added.

    Arguments:
        event: The last event that is in it.
        refreshed: When it was made.
        ids: The id of each row, and of later ones.
        row_of: The row of each id, and of later ones.
        alive: Which rows are there.
        adjacency: The edges.
        scored: The scores.
        scoring: What made them, for provisional scores.
    """

    event: int
    refreshed: float
    ids: Sequence[str]
    row_of: dict[str, int]
    alive: NDArray[np.bool_]
    adjacency: sp.csr_array
    scored: Scored
    scoring: Scoring

    def row(self, node: str) -> int | None:
        """The row of a node that is there."""
        row = self.row_of.get(node)
        return row if row is not None and row < len(self.alive) and self.alive[row] else None

    def neighbours(self, row: int) -> NDArray[np.int64]:
        """The rows of a node's neighbours."""
        return np.asarray(self.adjacency.indices[self.adjacency.indptr[row] : self.adjacency.indptr[row + 1]])


@dataclass
class _Pending:
    """A new node that no snapshot holds yet."""

    event: int
    features: Sequence[float]
    neighbours: set[str] = field(default_factory=set)
    row: NewRow | None = None
    scored: Scored | None = None


class Service:
    """Takes events, keeps scores, answers.

    Events are stored before they are acknowledged. One thread reads them from there, applies them to the graph, brings
    scores up to date and puts a new snapshot in the place of the old one; readers take whichever is there.

    Arguments:
        detector: A fitted and calibrated detector.
        graph: The graph that the first event meets.
        store: The database.
        folder: Where snapshots of the graph go.
        settings: How it decides.
    """

    def __init__(
        self, detector: Detector, graph: Graph, store: EventStore, folder: Path, settings: Settings | None = None
    ) -> None:
        self.detector, self.store, self.folder = detector, store, folder
        self.settings = settings or Settings()
        self.class_names, self.version = class_names(detector), fingerprint_of(detector)
        self.failure: str | None = None
        self.accepted = 0
        self.ignored = 0
        self._received: dict[int, float] = {}
        self._existence: dict[str, tuple[int, bool]] = {}
        self._pending: dict[str, _Pending] = {}
        self._intake, self._wake, self._stopping = threading.Lock(), threading.Event(), threading.Event()
        self._full_asked = threading.Event()
        self._check_graph(graph)
        self._live, self._found = self._recovered(graph)
        self._snapshot = self._refreshed(self._scoring(), None)
        self._full_at, self._saved = time.monotonic(), self._live.event
        self._thread = threading.Thread(target=self._run, name="degem-writer", daemon=True)

    # -- life --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Catch up with the database, and go on doing so in a thread."""
        self.accepted = self.store.last_event()
        self._step()
        self._thread.start()

    def stop(self) -> None:
        """Finish what is being written, and write the graph to the disk."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
            if self.failure is None:
                self._save()
        self.store.close()

    @property
    def snapshot(self) -> Snapshot:
        """The scores as they are now."""
        return self._snapshot

    @property
    def is_ready(self) -> bool:
        """Whether events are taken and applied."""
        return self._thread.is_alive() and self.failure is None

    @property
    def queue(self) -> int:
        """How many events are stored that the scores do not have yet."""
        return max(self.accepted - self._snapshot.event, 0)

    @property
    def lag(self) -> float:
        """For how many seconds the oldest of these has been waiting."""
        waiting = [at for event, at in list(self._received.items()) if event > self._snapshot.event]
        return time.time() - min(waiting) if waiting else 0.0

    def ask_for_full_refresh(self) -> None:
        """Have the whole graph scored, and written to the disk, as soon as may be."""
        self._full_asked.set()
        self._wake.set()

    def wait_for(self, event: int, seconds: float) -> bool:
        """Wait until the scores have an event."""
        until = time.monotonic() + seconds
        while self._snapshot.event < event and time.monotonic() < until and self.failure is None:
            time.sleep(0.005)
        return self._snapshot.event >= event

    # -- events ------------------------------------------------------------------------------------------------

    def submit(self, batch: Batch, body: bytes) -> dict[str, Any]:
        """Store a batch and give what is known of its new nodes.

        Arguments:
            batch: The batch.
            body: What it was read from: that is what is stored.
        """
        if not self.is_ready:
            raise UnavailableError(self.failure or "the service is not running: start it anew")
        with self._intake:
            exists: dict[str, bool] = {}
            stored = self.store.append(
                batch.client, batch.sequence, body, len(batch.events), lambda: self._check(batch, exists)
            )
            if not stored.again:
                self._existence.update((node, (stored.last, there)) for node, there in exists.items())
                self._received[stored.last] = time.time()
                self.accepted = max(self.accepted, stored.last)
                changed = self._note(batch, stored.first)
        if not stored.again:
            self._wake.set()
            for node in changed:
                self._score_provisionally(node)
        added = [event.id for event in batch.events if isinstance(event, AddNode)]
        found = self.answers(added)
        return {
            "first_event": stored.first,
            "last_event": stored.last,
            "duplicate": stored.again,
            "nodes": [answer for answer in found if answer is not None],
        }

    def _check(self, batch: Batch, exists: dict[str, bool]) -> None:
        """Refuse a batch that does not fit the graph; note which nodes come and go."""

        def is_there(node: str) -> bool:
            known = exists.get(node)
            if known is None:
                known = self._existence.get(node, (0, None))[1]
            return self._snapshot.row(node) is not None if known is None else known

        for position, event in enumerate(batch.events):
            place = f"events[{position}]"
            if isinstance(event, AddNode | UpdateNode) and len(event.features) != self.detector.num_features_:
                raise EventError(
                    f"{place}: {len(event.features)} features, the model has {self.detector.num_features_}"
                )
            if isinstance(event, AddNode):
                if is_there(event.id):
                    raise EventError(f"{place}: node {quoted(event.id)} is there already: use update_node")
                exists[event.id] = True
                continue
            ends = (event.id,) if isinstance(event, UpdateNode | RemoveNode) else (event.source, event.target)
            for node in ends:
                if not is_there(node):
                    raise EventError(f"{place}: there is no node {quoted(node)} (as of event {self.accepted})")
            if isinstance(event, RemoveNode):
                exists[event.id] = False

    def _note(self, batch: Batch, first: int) -> list[str]:
        """Keep what is needed for provisional scores; return the new nodes that a batch is about."""
        changed: dict[str, None] = {}
        for number, event in enumerate(batch.events, first):
            if isinstance(event, AddNode):
                self._pending[event.id] = _Pending(number, event.features)
                changed[event.id] = None
            elif isinstance(event, RemoveNode):
                self._pending.pop(event.id, None)
                changed.pop(event.id, None)
            elif isinstance(event, UpdateNode):
                if event.id in self._pending:
                    self._pending[event.id].features = event.features
                    changed[event.id] = None
            else:
                for node, other in ((event.source, event.target), (event.target, event.source)):
                    if node in self._pending:
                        near = self._pending[node].neighbours
                        (near.add if isinstance(event, AddEdge) else near.discard)(other)
                        changed[node] = None
        return list(changed)

    def _score_provisionally(self, node: str) -> None:
        pending, now = self._pending.get(node), self._snapshot
        if pending is None:
            return
        rows, new = [], []
        for other in sorted(pending.neighbours):
            near, row = self._pending.get(other), now.row(other)
            if row is not None:
                rows.append(row)
            elif near is not None and near.row is not None:
                new.append(near.row)
        made = now.scoring.provisional(pending.features, np.array(rows, dtype=np.int64), new, now.scored)
        if made is not None:
            pending.row, pending.scored = made

    # -- answers -----------------------------------------------------------------------------------------------

    def answers(self, nodes: Sequence[str], alpha: float | None = None) -> list[dict[str, Any] | None]:
        """What is known of some nodes: None of one that is not there."""
        alpha = self.settings.alpha if alpha is None else alpha
        waiting = {node: self._pending.get(node) for node in nodes}  # before the snapshot, which may take them over
        now, decided = self._snapshot, self.store.decided(nodes)
        rows = {node: row for node in nodes if (row := now.row(node)) is not None}
        exact = self._described(now.scored.of_rows(np.array(list(rows.values()), dtype=np.int64)), alpha)
        known = dict(zip(rows, exact, strict=True))

        def answer(node: str) -> dict[str, Any] | None:
            pending = waiting[node]
            if pending is not None:
                status = "pending" if pending.scored is None else "provisional"
                event, degree = pending.event, len(pending.neighbours)
                said = {} if pending.scored is None else self._described(pending.scored, alpha)[0]
            elif node in known:
                status, event, degree, said = "exact", now.event, len(now.neighbours(rows[node])), known[node]
            else:
                return None
            flagged = decided[node]["flagged"] if node in decided else None
            return {"id": node, "status": status, "event": event, "degree": degree, "flagged_online": flagged} | said

        return [answer(node) for node in nodes]

    def _described(self, scored: Scored, alpha: float) -> list[dict[str, Any]]:
        p_values = scored.p_values()
        described = []
        for place, (score, p_value) in enumerate(zip(scored.scores.tolist(), p_values.tolist(), strict=True)):
            told = {"score": score, "p_value": p_value, "flagged": p_value <= alpha}
            if scored.classes is not None and scored.chances is not None:
                told["class"] = self.class_names[scored.classes[place]]
                told["class_probability"] = float(scored.chances[place])
            told["terms"] = {name: float(term[place]) for name, term in scored.terms.items()}
            described.append(told)
        return described

    # -- the thread that writes --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(POLL)
            self._wake.clear()
            try:
                self._step()
            except Exception as error:  # answers go on, events are refused
                self.failure = f"events are no longer applied ({type(error).__name__}: {error}): start the server anew"
                LOGGER.exception("the writer stopped")
                return

    def _step(self) -> None:
        """Apply what the database has, then tidy up if it is time."""
        while not self._stopping.is_set():
            batches = self.store.after(self._live.event, AT_ONCE)
            if not batches:
                break
            numbered = [
                (number, event)
                for first, _, body in batches
                for number, event in enumerate(Batch.model_validate_json(body).events, first)
            ]
            changes = self._live.apply(numbered)
            self.ignored += changes.ignored
            self._publish(self._refreshed(self._snapshot.scoring, changes), changes.arrivals)
        due = time.monotonic() - self._full_at >= self.settings.full_every and self._live.event > self._saved
        if due or self._full_asked.is_set():
            self._full_asked.clear()
            self._live = LiveGraph(self._live.graph(), self._live.event)
            self._publish(self._refreshed(self._scoring(), None), [])
            self._full_at = time.monotonic()
            self._save()

    def _scoring(self) -> Scoring:
        return scoring_of(self.detector, self._live, found=self._found, tolerance=self.settings.tolerance)

    def _refreshed(self, scoring: Scoring, changes: Any) -> Snapshot:
        scored, live = scoring.update(changes), self._live
        return Snapshot(live.event, time.time(), live.ids, live.row_of, live.alive, live.adjacency, scored, scoring)

    def _publish(self, snapshot: Snapshot, arrivals: list[tuple[int, int]]) -> None:
        """Decide on arrivals, then let readers see."""
        rows = np.array([row for _, row in arrivals], dtype=np.int64)
        scored = snapshot.scored.of_rows(rows)
        arrived = [
            Arrival(event, snapshot.ids[row], float(score), float(p_value))
            for (event, row), score, p_value in zip(arrivals, scored.scores, scored.p_values(), strict=True)
        ]
        self.store.decide(arrived, self.settings.fdr)
        self._snapshot = snapshot
        with self._intake:
            self.accepted = max(self.accepted, snapshot.event)
            for event in [event for event in self._received if event <= snapshot.event]:
                del self._received[event]
            for node in [node for node, (event, _) in self._existence.items() if event <= snapshot.event]:
                del self._existence[node]
            for node in [node for node, pending in self._pending.items() if pending.event <= snapshot.event]:
                del self._pending[node]

    # -- what lasts --------------------------------------------------------------------------------------------

    def _check_graph(self, graph: Graph) -> None:
        here = fingerprint("", graph)
        if self.store.fact("graph", lambda: here) != here:
            raise DegemError(
                "the database holds the events of another graph: give the graph that it was begun with, or another "
                "database"
            )

    def _recovered(self, graph: Graph) -> tuple[LiveGraph, bool]:
        """The graph of the last snapshot on the disk, and whether it holds the calibration nodes."""
        whole, rows = self.detector.calibration_.joined(graph)
        names = LiveGraph(whole).names
        known = self.detector.calibration_.nodes.ids
        if rows is not None:  # kept nodes that have joined have other ids
            names = names.copy()
            names[rows[rows >= 0]] = known[rows >= 0]
        saved = sorted(self.folder.glob("graph-*.npz"), key=_event_of)
        if not saved:
            return LiveGraph(whole.replace(columns={NAMES: names})), rows is not None
        return LiveGraph(read_npz(saved[-1]), _event_of(saved[-1])), rows is not None

    def _save(self) -> None:
        """Write the graph to the disk, beside the one before."""
        if self._live.event > self._saved:
            write_npz(self._live.graph(), self.folder / f"graph-{self._live.event}.npz")
            self._saved = self._live.event
            for old in sorted(self.folder.glob("graph-*.npz"), key=_event_of)[:-SNAPSHOTS_KEPT]:
                old.unlink(missing_ok=True)


def fingerprint_of(detector: Detector) -> str:
    """What tells one fit from another: a few letters."""
    digest = hashlib.sha256(detector.name.encode())
    digest.update(detector.calibration_.scores.tobytes())
    return digest.hexdigest()[:12]


def _event_of(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])
