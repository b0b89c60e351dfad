"""The service without its paths: one thread that writes, and snapshots that readers see."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from degem.data.fingerprint import fingerprint
from degem.detectors.base import Detector
from degem.errors import DegemError, one_line
from degem.explain import class_names
from degem.graph import Graph
from degem.serve.events import AddNode, Batch
from degem.serve.intake import Intake
from degem.serve.live_graph import Changes, LiveGraph
from degem.serve.saved_graphs import SavedGraphs
from degem.serve.scoring import Scored, Scoring, scoring_of
from degem.serve.snapshot import Snapshot
from degem.serve.store import Arrival, EventStore, StoreError

LOGGER = logging.getLogger("degem.serve")
POLL = 0.5  # seconds after which events of other servers are looked for
AT_ONCE = 200  # batches that are refreshed together
LONGEST_REST = 1.0  # seconds between refreshes: the writer rests as long as it worked, so that requests get on


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


class Service:
    """Takes events, keeps scores, answers.

    Events are stored before they are acknowledged. One thread reads them from there, applies them to the graph, brings
    scores up to date and puts a new snapshot in the place of the old one; readers take whichever is there.

    Arguments:
        detector: A fitted and calibrated detector.
        graph: The graph that the first event meets.
        store: The database.
        folder: Where the graph is written to.
        settings: How to decide.
    """

    def __init__(
        self, detector: Detector, graph: Graph, store: EventStore, folder: Path, settings: Settings | None = None
    ) -> None:
        self.detector, self.store, self.settings = detector, store, settings or Settings()
        self.class_names, self.version = class_names(detector), fingerprint_of(detector)
        self.failure: str | None = None
        self.accepted = self.ignored = 0
        self._intake, self._taking = Intake(detector.num_features_, weighted=detector.weighted_), threading.Lock()
        self._wake, self._stopping, self._full_asked = threading.Event(), threading.Event(), threading.Event()
        graph = graph if detector.weighted_ else graph.unweighted()
        here = fingerprint("", graph)
        if store.fact("graph", lambda: here) != here:
            raise DegemError(
                "the database holds the events of another graph: give the graph that it was begun with, or another "
                "database"
            )
        self._saved, self._graph = SavedGraphs(folder), graph
        self._snapshot: Snapshot | None = None
        self._full_due, self._full_event = 0.0, 0
        self._thread = threading.Thread(target=self._run, name="degem-writer", daemon=True)

    # -- life --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Apply what the database has, score the graph, and go on in a thread."""
        self._recover()
        self._thread.start()

    def stop(self) -> None:
        """Finish what is being written, and write the graph to the disk."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
            if self.failure is None:
                self._saved.save(self._live)
        self.store.close()

    @property
    def snapshot(self) -> Snapshot:
        """The scores as they are now."""
        if self._snapshot is None:
            raise UnavailableError("the service is starting: wait a little")
        return self._snapshot

    @property
    def is_ready(self) -> bool:
        """Whether events are taken and applied."""
        return self._thread.is_alive() and self.failure is None

    @property
    def queue(self) -> int:
        """How many events are stored that the scores do not have yet."""
        return max(self.accepted - self.snapshot.event, 0)

    @property
    def lag(self) -> float:
        """For how many seconds the oldest of these has been waiting."""
        since = self._intake.waiting_since(self.snapshot.event)
        return 0.0 if since is None else time.time() - since

    def ask_for_full_refresh(self) -> None:
        """Have the whole graph scored, and written to the disk, as soon as may be."""
        self._full_asked.set()
        self._wake.set()

    # -- events ------------------------------------------------------------------------------------------------

    def submit(self, batch: Batch, body: bytes) -> dict[str, Any]:
        """Store a batch and give what is known of its new nodes.

        Arguments:
            batch: The batch.
            body: What it was read from: that is what is stored.
        """
        if not self.is_ready:
            raise UnavailableError(self.failure or "the service is not running: start it anew")
        with self._taking:
            there: dict[str, bool] = {}

            def check() -> None:
                there.update(self._intake.check(batch, self.snapshot))

            stored = self.store.append(batch.client, batch.sequence, body, len(batch.events), check)
            if not stored.again:
                self.accepted = max(self.accepted, stored.last)
                about = self._intake.add(batch, stored, there)
        known: dict[str, Any] = {"first_event": stored.first, "last_event": stored.last, "duplicate": stored.again}
        try:
            if not stored.again:
                self._score_provisionally(about)
            added = [event.id for event in batch.events if isinstance(event, AddNode)]
            return known | {"nodes": [answer for answer in self.answers(added) if answer is not None]}
        except Exception as error:  # the events are stored: whoever sent them must hear it
            LOGGER.exception("no provisional scores")
            reason = one_line(f"the events are stored, no provisional scores: {type(error).__name__}: {error}")
            return known | {"nodes": [], "warning": reason}
        finally:
            self._wake.set()  # now, so that a refresh does not delay this answer

    def _score_provisionally(self, about: Sequence[str]) -> None:
        """Score the new nodes that a batch was about."""
        with self._taking:
            now = self.snapshot
            nodes, rows = self._intake.rows_of(about, now)
        scored = now.scoring.provisional(rows, now.scored) if nodes else None
        for node, told in zip(nodes, self._described(scored) if scored else (), strict=False):
            new = self._intake.new.get(node)
            if new is not None:
                new.told = told

    # -- answers -----------------------------------------------------------------------------------------------

    def answers(self, nodes: Sequence[str], alpha: float | None = None) -> list[dict[str, Any] | None]:
        """What is known of some nodes: None of one that is not there."""
        alpha = self.settings.alpha if alpha is None else alpha
        waiting = {node: self._intake.new.get(node) for node in nodes}  # before the snapshot, which may take them over
        now = self.snapshot
        rows = {node: row for node in nodes if waiting[node] is None and (row := now.row(node)) is not None}
        exact = self._described(now.scored.of_rows(np.array(list(rows.values()), dtype=np.int64))) if rows else []
        known, decided = dict(zip(rows, exact, strict=True)), self.store.decided(list(rows)) if rows else {}

        def answer(node: str) -> dict[str, Any] | None:
            new = waiting[node]
            if new is not None:
                status = "pending" if new.told is None else "provisional"
                event, degree, told = new.event, len(new.edges), new.told or {}
            elif node in known:
                status, event, degree, told = "exact", now.event, len(now.neighbours(rows[node])), known[node]
            else:
                return None
            flags = {"flagged": told["p_value"] <= alpha} if told else {}
            flags |= {"flagged_online": decided[node]["flagged"] if node in decided else None}
            return {"id": node, "status": status, "event": event, "degree": degree} | flags | told

        return [answer(node) for node in nodes]

    def _described(self, scored: Scored) -> list[dict[str, Any]]:
        """What is told of each node that has scores."""
        columns: dict[str, list[Any]] = {"score": scored.scores.tolist(), "p_value": scored.p_values().tolist()}
        if scored.classes is not None and scored.chances is not None:
            columns["class"] = [self.class_names[place] for place in scored.classes]
            columns["class_probability"] = scored.chances.tolist()
        terms = [term.tolist() for term in scored.terms.values()]
        columns["terms"] = [dict(zip(scored.terms, parts, strict=True)) for parts in zip(*terms, strict=True)]
        if not terms:
            columns["terms"] = [{}] * len(scored.scores)
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    # -- the thread that writes --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(POLL)
            self._wake.clear()
            try:
                if self.failure is not None:
                    self._recover()
                    self.failure = None
                self._step()
            except StoreError as error:  # answers go on, events are refused until the database is back
                self.failure = str(error)
                LOGGER.error(self.failure)
            except Exception as error:
                self.failure = f"events are no longer applied ({type(error).__name__}: {error}): start the server anew"
                LOGGER.exception("the writer stopped")
                return

    def _recover(self) -> None:
        """From the graph on the disk, or the first one, by the events of the database, to the graph as it is now."""
        self.accepted = self.store.last_event()
        self._live, self._found = self._saved.recovered(self._graph, self.detector.calibration_)
        arrivals: list[tuple[int, int]] = []
        while changes := self._apply_next():
            arrivals += changes.arrivals
        self._score_anew([(event, row) for event, row in arrivals if self._live.alive[row]])

    def _step(self) -> None:
        """Apply what the database has, then tidy up if it is time."""
        begun = time.monotonic()
        while not self._stopping.is_set() and (changes := self._apply_next()):
            self._publish(self.snapshot.scoring, changes, changes.arrivals)
            self._stopping.wait(min(time.monotonic() - begun, LONGEST_REST))
            begun = time.monotonic()
        due = time.monotonic() >= self._full_due and self._live.event > self._full_event
        if due or self._full_asked.is_set():
            self._full_asked.clear()
            self._live = LiveGraph(self._live.graph(), self._live.event)
            self._score_anew([])
            self._saved.save(self._live)

    def _apply_next(self) -> Changes | None:
        """Apply the next events of the database to the graph; None if there are none."""
        batches = self.store.after(self._live.event, AT_ONCE)
        if not batches:
            return None
        changes = self._live.apply(
            (number, event)
            for first, body in batches
            for number, event in enumerate(Batch.model_validate_json(body).events, first)
        )
        self.ignored += changes.ignored
        return changes

    def _score_anew(self, arrivals: list[tuple[int, int]]) -> None:
        """Score the whole graph."""
        scoring = scoring_of(self.detector, self._live, found=self._found, tolerance=self.settings.tolerance)
        self._publish(scoring, None, arrivals)
        self._full_due, self._full_event = time.monotonic() + self.settings.full_every, self._live.event

    def _publish(self, scoring: Scoring, changes: Changes | None, arrivals: list[tuple[int, int]]) -> None:
        """Bring scores up to date, decide on arrivals, then let readers see."""
        scored, live = scoring.update(changes), self._live
        of_new = scored.of_rows(np.array([row for _, row in arrivals], dtype=np.int64))
        arrived = [
            Arrival(event, live.ids[row], float(score), float(p_value))
            for (event, row), score, p_value in zip(arrivals, of_new.scores, of_new.p_values(), strict=True)
        ]
        self.store.decide(arrived, self.settings.fdr)
        self._snapshot = Snapshot(
            live.event, time.time(), live.ids, live.row_of, live.alive, live.adjacency, scored, scoring
        )
        with self._taking:
            self.accepted = max(self.accepted, live.event)
            self._intake.forget(live.event)


def fingerprint_of(detector: Detector) -> str:
    """What tells one fit from another: a few letters."""
    digest = hashlib.sha256(detector.name.encode())
    digest.update(detector.calibration_.scores.tobytes())
    return digest.hexdigest()[:12]
