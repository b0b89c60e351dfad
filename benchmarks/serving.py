"""``degem serve`` as a process of its own on loopback, killed at random moments, and what it must not lose then."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from degem import Detector, Graph, read_graph
from degem.calibration import judge
from degem.client import Client, ServiceError
from degem.serve.events import AddNode, Batch
from degem.serve.live_graph import LiveGraph
from degem.serve.store import EventStore

PATIENCE = 300.0


class Server:
    """A server.

    Arguments:
        model: The folder of the model.
        graph: The graph, as the command takes it.
        state: The folder of the server.
        options: Further options of the command.
    """

    def __init__(self, model: Path, graph: str | Path, state: Path, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        place = ["--graph", str(graph), "--state", str(state), "--port", str(port), "--max-rate", "1e9"]
        self._command = [sys.executable, "-m", "degem", "serve", str(model), *place, *options]
        self._log = state.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self) -> None:
        """Start the process."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def start(self) -> float:
        """Start the process, and wait until it is ready; return the seconds that took."""
        begun = time.perf_counter()
        self.spawn()
        while time.perf_counter() - begun < PATIENCE:
            if self._running.poll() is not None:
                break
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/v2/health/ready").is_success:
                    return time.perf_counter() - begun
            time.sleep(0.02)
        raise RuntimeError(f"the server is not ready: {self._log.read_text()[-2000:]}")

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End the process."""
        self._running.send_signal(how)
        self._running.wait(PATIENCE)

    @property
    def resident_mib(self) -> float:
        """Its resident memory."""
        lines = Path(f"/proc/{self._running.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    @property
    def processor_seconds(self) -> float:
        """The processor time that it has used."""
        user, system = Path(f"/proc/{self._running.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process


@contextlib.contextmanager
def serving(server: Server) -> Iterator[Server]:
    """A server that runs, and that ends with the block."""
    server.start()
    try:
        yield server
    finally:
        server.end(signal.SIGTERM)


# -- kills -------------------------------------------------------------------------------------------------------------


@dataclass
class Writer:
    """Adds nodes and removes some of them; remembers what it sent and what was acknowledged.

    Arguments:
        client: A client without patience.
        graph: The graph, whose nodes are joined to.
        rng: Source of randomness.
    """

    client: Client
    graph: Graph
    rng: np.random.Generator
    acknowledged: list[tuple[int, int]] = field(default_factory=list)
    batches: list[list[str]] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)

    def send_until_broken(self) -> None:
        """Send batches until the server is gone."""
        with contextlib.suppress(ServiceError):
            while True:
                self.send()

    def send(self) -> None:
        """Send a batch: the one that got no answer, if there is one."""
        if len(self.batches) == len(self.acknowledged):
            self.batches.append(self._new_batch())
        answer = self.client.flush()
        assert answer is not None
        self.acknowledged.append((answer["first_event"], answer["last_event"]))

    def _new_batch(self) -> list[str]:
        """Gather some events in the client; return the nodes that come."""
        come: list[str] = []
        for number in range(self.rng.integers(1, 5)):
            come.append(f"{self.client.name} {len(self.batches)} {number}")
            self.client.add_node(come[-1], np.asarray(self.graph.features)[self.rng.integers(self.graph.num_nodes)])
            for other in self.rng.choice(self.graph.node_ids, 3, replace=False):
                self.client.add_edge(come[-1], str(other))
        self.nodes += come
        if self.rng.random() < 0.3:
            self.client.remove_node(self.nodes.pop(self.rng.integers(len(self.nodes))))
        return come


def killed(
    model: Path, graph: Path, state: Path, *, count: int, seed: int = 0, database: str | None = None
) -> dict[str, Any]:
    """Kill a server so many times while three clients write; return what was lost, doubled, and how far scores are off.

    Every fourth kill comes while it starts. The graph is written to the disk every second.
    """
    rng = np.random.default_rng(seed)
    url = database or f"sqlite:///{state / 'events.db'}"
    served, options = read_graph(graph), ["--tolerance", "0", "--full-every", "1", "--database", url]
    server = Server(model, graph, state, *options)
    writers = [
        Writer(Client(server.url, name=f"writer {place}", patience=0, batch_size=10**6), served, child)
        for place, child in enumerate(rng.spawn(3))
    ]
    for kill in range(count):
        if kill % 4 == 3:
            server.spawn()
            time.sleep(rng.uniform(0, 5))
        else:
            server.start()
            threads = [threading.Thread(target=writer.send_until_broken) for writer in writers]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0, 2))
        server.end()
        for thread in threads:
            thread.join()
    with serving(server):
        for writer in writers:
            writer.send()
        found = lost_and_doubled(url, writers)
        last = max(last for writer in writers for _, last in writer.acknowledged)
        return found | {
            "kills": count,
            "score_difference": score_difference(model, served, url, writers[0].client, last),
        }


def lost_and_doubled(url: str, writers: Sequence[Writer]) -> dict[str, int]:
    """What the database holds beside what was acknowledged."""
    store = EventStore(url)
    rows = [(first, Batch.model_validate_json(body)) for first, body in store.after(0, 10**9)]
    decided = [decision["event"] for decision in store.decisions(10**9)]
    store.close()
    stored = {(batch.client, batch.sequence): (first, first + len(batch.events) - 1) for first, batch in rows}
    acknowledged = {
        (writer.client.name, sequence): place
        for writer in writers
        for sequence, place in enumerate(writer.acknowledged)
    }
    come = [event.id for _, batch in rows for event in batch.events if isinstance(event, AddNode)]
    sent = [node for writer in writers for batch in writer.batches for node in batch]
    places = sorted(stored.values())
    return {
        "batches": len(acknowledged),
        "events": places[-1][1],
        "lost": sum(stored.get(key) != place for key, place in acknowledged.items()) + len(set(sent) - set(come)),
        "doubled": len(rows) - len(stored) + len(come) - len(set(come)) + len(decided) - len(set(decided)),
        "gaps": sum(first != last + 1 for (_, last), (first, _) in pairwise([(0, 0), *places])),
    }


def score_difference(model: Path, graph: Graph, url: str, client: Client, last: int) -> float:
    """By how much scores differ at most from those of the first graph with every event, scored as a whole."""
    store, live = EventStore(url), LiveGraph(graph)
    for first, body in store.after(0, 10**9):
        live.apply(enumerate(Batch.model_validate_json(body).events, first))
    store.close()
    client.patience = PATIENCE
    client.wait_for(last)
    names = [str(name) for name in live.graph().node_ids]
    found = [answer for start in range(0, len(names), 1000) for answer in client.score(names[start : start + 1000])]
    scores = np.array([np.nan if answer is None else answer["score"] for answer in found])
    whole = judge(Detector.load(model), live.graph()).result.scores
    return float(np.abs(scores - whole).max()) if client.status()["nodes"] == len(names) else float("inf")
