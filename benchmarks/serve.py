"""The service measured: provisional scores, refresh lag, exact refresh, memory, restart, kills. All on loopback.

    python benchmarks/serve.py provisional               # Amazon-Photo and arxiv-structural: a command for each part
    python benchmarks/serve.py lag --seconds 60
    python benchmarks/serve.py refresh
    python benchmarks/serve.py restart
    python benchmarks/serve.py memory --seconds 1800 --datasets amazon-photo
    python benchmarks/serve.py kills --count 100
    python benchmarks/serve.py page

Each part writes ``results/serve-PART.csv``, a row a dataset as soon as it is measured, and then the figures in
``docs/serve.md``. ``kills`` goes on with the rounds of ten that the file lacks: delete it to begin anew. Models are
fitted once and kept in ``--folder``. An arrival is a copy of a random node: its features, and edges to its neighbours,
at most a hundred of them.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import measure
import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from serve_page import seeds_of, write, write_page
from serving import Server, killed, serving

from degem import DeGEM, Detector, Graph
from degem.calibration import conformal_p_values
from degem.data.archives import write_npz
from degem.data.datasets import load_dataset
from degem.data.demo import digits_graph
from degem.errors import DegemError
from degem.serve.events import Event
from degem.serve.live_graph import LiveGraph
from degem.serve.scoring import RowScoring, Scored, scoring_of

DATASETS = "amazon-photo,arxiv-structural"
TOLERANCES = (0.0, 1e-4, 1e-3, 1e-2)
MOST_EDGES, ALPHA = 100, 0.05
A_ROUND = 10  # kills of one server
EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Event])
LOAD = """import sys
from degem import Detector
from degem.data.datasets import load_dataset
from degem.serve import running
Detector.load(sys.argv[1])
load_dataset(sys.argv[2])"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "kills", "page"])
    parser.add_argument("--datasets", default=DATASETS, help="separated by commas")
    parser.add_argument("--seconds", type=float, default=60, help="of load, in lag and memory")
    parser.add_argument("--nodes", type=int, default=10_000, help="that arrive, in provisional")
    parser.add_argument("--connections", type=int, default=1, help="in provisional")
    parser.add_argument("--batches", type=int, default=30, help="of ten events, in refresh and restart")
    parser.add_argument("--count", type=int, default=100, help="of kills, in rounds of ten")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "degem-serve-benchmark")
    options = parser.parse_args()
    if options.part == "kills":
        for seed in sorted(set(range(-(-options.count // A_ROUND))) - seeds_of("kills")):
            write([{"dataset": "digits", "seed": seed} | kills(options.folder, seed)], "kills")
    for dataset in options.datasets.split(",") if options.part in PARTS else ():
        for row in PARTS[options.part](Bench(dataset, options.folder), options):
            write([{"dataset": dataset} | row], options.part)
    write_page()


class Bench:
    """A dataset, and DeGEM fitted on it.

    Arguments:
        dataset: Its name.
        folder: Where models are kept.
    """

    def __init__(self, dataset: str, folder: Path) -> None:
        self.dataset, self.folder, self.model = dataset, folder, folder / dataset
        self.graph = load_dataset(dataset)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            Detector.load(self.model)
        except DegemError:  # not there, or of another version
            DeGEM().fit(self.graph).save(self.model)

    def server(self, *options: str) -> Server:
        """A server with nothing behind it."""
        return Server(self.model, self.dataset, Path(tempfile.mkdtemp(dir=self.folder)) / "state", *options)


# -- load --------------------------------------------------------------------------------------------------------------


class Arrivals:
    """Events of copies of a graph's nodes.

    Arguments:
        graph: The graph.
        seed: Seed of the draw.
    """

    def __init__(self, graph: Graph, seed: int = 0) -> None:
        self.graph, self.rng, self.count = graph, np.random.default_rng(seed), 0
        self.ids = [str(name) for name in graph.node_ids]

    def node(self, most_edges: int = MOST_EDGES) -> list[dict[str, Any]]:
        """The events of one arrival."""
        row, self.count = int(self.rng.integers(self.graph.num_nodes)), self.count + 1
        features = self.graph.features[[row]]
        dense = np.asarray(features if isinstance(features, np.ndarray) else features.toarray())[0]
        others = self.graph.adjacency[[row]].indices
        chosen = self.rng.choice(others, min(len(others), most_edges), replace=False)
        node = f"new {self.count}"
        edges = [{"op": "add_edge", "source": node, "target": self.ids[other]} for other in chosen]
        return [{"op": "add_node", "id": node, "features": dense.round(6).tolist()}, *edges]

    def events(self, count: int = 10) -> list[dict[str, Any]]:
        """Arrivals that are so many events, with some of their edges."""
        events: list[dict[str, Any]] = []
        while len(events) < count:
            events += self.node(count - 1 - len(events))
        return events


class Line:
    """One connection to a server.

    Arguments:
        server: The server.
        client: The name to send under.
    """

    def __init__(self, server: Server, client: str = "load") -> None:
        self.client = client
        self._line = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=120)
        self._sequence = itertools.count()

    def batch(self, events: list[dict[str, Any]]) -> str:
        """The next batch, as it is sent."""
        return json.dumps({"client": self.client, "sequence": next(self._sequence), "events": events})

    def post(self, batch: str) -> tuple[float, dict[str, Any]]:
        """Post a batch; return the seconds until the answer was there, and the answer."""
        begun = time.perf_counter()
        answer = self._ask("POST", "/v2/events", batch)
        return time.perf_counter() - begun, answer

    def status(self) -> dict[str, Any]:
        """Where the server stands."""
        return self._ask("GET", "/v2/status")

    def _ask(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        self._line.request(method, path, body, {"Content-Type": "application/json"})
        response = self._line.getresponse()
        text = response.read()
        if response.status != 200:
            raise RuntimeError(text.decode())
        return json.loads(text)  # type: ignore[no-any-return]


def at_rate(per_second: float, seconds: float) -> Iterator[float]:
    """Wait for each turn, so many a second for so long; gives the seconds since the first."""
    begun = time.perf_counter()
    for turn in range(int(per_second * seconds)):
        time.sleep(max(0.0, begun + turn / per_second - time.perf_counter()))
        yield time.perf_counter() - begun


# -- parts -------------------------------------------------------------------------------------------------------------


def provisional(bench: Bench, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Batches of ten arrivals on some connections, each as soon as the one before is answered."""
    arrivals = Arrivals(bench.graph)
    batches = [[event for _ in range(10) for event in arrivals.node()] for _ in range(options.nodes // 10 + 10)]
    with serving(bench.server()) as server:
        lines = [Line(server, f"load {k}") for k in range(options.connections)]
        for batch in batches[:10]:
            lines[0].post(lines[0].batch(batch))
        bodies = [
            [line.batch(batch) for batch in batches[10 + place :: len(lines)]] for place, line in enumerate(lines)
        ]
        taken, statuses = list[float](), list[str]()

        def send(line: Line, bodies: list[str]) -> None:
            for body in bodies:
                seconds, answer = line.post(body)
                taken.append(seconds)
                statuses.extend(node["status"] for node in answer["nodes"])

        threads = [threading.Thread(target=send, args=pair) for pair in zip(lines, bodies, strict=True)]
        begun, used = time.perf_counter(), server.processor_seconds
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall, used = time.perf_counter() - begun, server.processor_seconds - used
    milliseconds = 1000 * np.array(taken)
    yield {
        "connections": options.connections,
        "nodes": 10 * len(taken),
        "edges_a_node": np.mean([len(batch) for batch in batches]) / 10 - 1,
        "nodes_a_second": 10 * len(taken) / wall,
        "p50_ms": np.percentile(milliseconds, 50),
        "p99_ms": np.percentile(milliseconds, 99),
        "server_cpu_ms_a_batch": 1000 * used / len(taken),
        "scored_at_once": 1 - statuses.count("pending") / len(statuses),
    }


def lag(bench: Bench, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A hundred events a second, ten at a time; how long events wait for exact scores."""
    arrivals, lags = Arrivals(bench.graph), []
    with serving(bench.server()) as server:
        line, watching, over = Line(server), Line(server), threading.Event()

        def watch() -> None:
            while not over.is_set():
                lags.append(watching.status()["lag"])
                time.sleep(0.05)

        watcher = threading.Thread(target=watch)
        watcher.start()
        latencies = [line.post(line.batch(arrivals.events()))[0] for _ in at_rate(10, options.seconds)]
        over.set()
        watcher.join()
    yield {
        "seconds": options.seconds,
        "events": 10 * len(latencies),
        "lag_p50": np.percentile(lags, 50),
        "lag_p99": np.percentile(lags, 99),
        "lag_max": max(lags),
        "ack_p99_ms": 1000 * np.percentile(latencies, 99),
    }


def refresh(bench: Bench, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Batches of ten events, refreshed by rows; against a pass over the whole graph, in time and in what it gives."""
    detector = Detector.load(bench.model)
    full, exact = float("nan"), None
    for tolerance in TOLERANCES:
        live, arrivals = LiveGraph(bench.graph), Arrivals(bench.graph)
        scoring = scoring_of(detector, live, found=True, tolerance=tolerance)
        assert isinstance(scoring, RowScoring)
        scoring.update(None)
        taken, rows, around, scored = [], [], [], None
        for _ in range(options.batches):
            events = EVENTS.validate_python(arrivals.events())
            begun = time.perf_counter()
            changes = live.apply(enumerate(events, live.event + 1))
            scored = scoring.update(changes)
            taken.append(time.perf_counter() - begun)
            rows.append(scoring.num_rows)
            begun_at = np.union1d(changes.begun, changes.touched)
            around.append(within(live, begun_at, detector.row_scorer().num_hops))  # type: ignore[attr-defined]
        assert scored is not None
        if exact is None:  # tolerance 0
            exact, score = scored, partial(detector.score, live.graph())
            full = min(seconds_of(score) for _ in range(2))
        yield {
            "tolerance": tolerance,
            "refresh_seconds": np.median(taken),
            "full_seconds": full,
            "times_faster": full / np.median(taken),
            "rows": np.mean(rows),
            "rows_within_hops": np.mean(around),
            "nodes": len(live.ids),
            **difference(scored, exact),
        }


def within(live: LiveGraph, rows: NDArray[np.int64], num_hops: int) -> int:
    """How many rows are at most so many steps away from some."""
    found = np.zeros(len(live.ids), dtype=np.bool_)
    found[rows] = True
    for _ in range(num_hops):
        before = np.flatnonzero(found)
        found[live.adjacency[before].indices] = True
        if found.sum() == len(before):
            break
    return int(found.sum())


def difference(scored: Scored, exact: Scored) -> dict[str, float]:
    """How far scores are from exact ones: in standard deviations of these, in p-values, and in flags."""
    off = np.abs(scored.scores - exact.scores) / exact.scores.std()
    p_values = [conformal_p_values(each.calibration, each.scores) for each in (scored, exact)]
    flips = (p_values[0] <= ALPHA) != (p_values[1] <= ALPHA)
    return {
        "score_off_mean": float(off.mean()),
        "score_off_max": float(off.max()),
        "p_off_max": float(np.abs(p_values[0] - p_values[1]).max()),
        "flags_changed": int(flips.sum()),
    }


def restart(bench: Bench, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A server is killed after some events, and started again."""
    server, arrivals = bench.server(), Arrivals(bench.graph)
    server.start()
    line = Line(server)
    for _ in range(options.batches):
        line.post(line.batch(arrivals.events()))
    server.end()
    ready = server.start()
    server.end(signal.SIGTERM)
    command = [sys.executable, "-c", LOAD, str(bench.model), bench.dataset]
    load = seconds_of(lambda: subprocess.run(command, check=True))
    yield {"ready_seconds": ready, "load_seconds": load, "beyond_load": ready - load}


def memory(bench: Bench, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A hundred events a second, as many nodes going as come, the whole graph scored every minute."""
    arrivals, there = Arrivals(bench.graph), list[str]()
    samples: list[tuple[float, float]] = []
    with serving(bench.server("--full-every", "60")) as server:
        line = Line(server)
        for at in at_rate(10, options.seconds):
            events = arrivals.events(8)
            there += [event["id"] for event in events if event["op"] == "add_node"]
            gone = there[: max(len(there) - 200, 0)]
            del there[: len(gone)]
            line.post(line.batch([*events, *({"op": "remove_node", "id": node} for node in gone)]))
            if len(samples) < at:
                samples.append((at, server.resident_mib))
    seconds, mib = np.array(samples).T
    settled = seconds >= seconds[-1] / 3
    yield {
        "seconds": options.seconds,
        "start_mib": mib[0],
        "third_mib": mib[settled][0],
        "end_mib": mib[-1],
        "max_mib": mib.max(),
        "mib_a_minute": 60 * np.polyfit(seconds[settled], mib[settled], 1)[0],
    }


def kills(folder: Path, seed: int) -> dict[str, Any]:
    """A server on the digits is killed ten times."""
    folder.mkdir(parents=True, exist_ok=True)
    state = Path(tempfile.mkdtemp(dir=folder)) / "state"
    state.mkdir()
    graph = digits_graph().subgraph(np.arange(300))
    graph = graph.replace(node_ids=np.array([f"digit {row}" for row in range(300)], dtype=object))
    DeGEM(num_epochs=2, latent_dim=16, num_hops=5).fit(graph).save(state.parent / "model")
    write_npz(graph, state.parent / "graph.npz")
    return killed(state.parent / "model", state.parent / "graph.npz", state, count=A_ROUND, seed=seed)


def seconds_of(function: Callable[[], object]) -> float:
    """How long a call takes."""
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


PARTS: dict[str, Callable[[Bench, argparse.Namespace], Iterator[dict[str, Any]]]] = {
    "provisional": provisional,
    "lag": lag,
    "refresh": refresh,
    "restart": restart,
    "memory": memory,
}


if __name__ == "__main__":
    measure.find_datasets()
    main()
