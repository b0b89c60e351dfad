"""The engine beside one machine, on this machine: time, bytes moved, recovery from faults, and a plan for more.

    python benchmarks/cluster.py                         # 1M nodes; then one faulty run of each kind; then 10M nodes
    python benchmarks/cluster.py --sizes 20000 --no-write

A cluster has a head without cores and workers of one core each; four workers on two cores are over-subscribed. Every
way fits DeGEM at its defaults on the same memory maps and scores every node, with one thread a worker, and as many
threads on one machine as there are workers. Start-up, until each worker has loaded its libraries, is told apart. Memory
is the sum of the proportional set sizes of all processes of the run, sampled twice a second. Rows go to
``results/cluster.csv``, and the page ``docs/cluster.md`` gets its tables from them.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import large_graph
import measure
import pandas as pd
import psutil
import torch

import degem
from degem import DeGEM
from degem.data.archives import read_memmap
from degem.detectors.degem.detector import used_hops
from degem.engine import Ray
from degem.engine.plan import Sizes, cluster_of, planned
from degem.ops.features import dense
from degem.propagation import Columns, choose_propagator

GIB = 2**30
KEY = ["what", "nodes", "way"]
RUNS = ["nodes", "way", "start_seconds", "fit_seconds", "score_seconds", "peak_gib"]
BYTES = ["nodes", "way", "planned propagate written GiB", "propagate written GiB", "propagate read GiB"]
BYTES += ["map rows written GiB", "map rows read GiB", "sample written GiB", "sample read GiB"]
FAULT_COLUMNS = ["nodes", "way", "undisturbed seconds", "recovery_seconds"]
PAPER_COLUMNS = ["graph", "machines", "hours", "dominates", "share", "edges_gib", "task_gib", "driver_gib", "store_tib"]
PAGE = Path(__file__).parents[1] / "docs" / "cluster.md"
PAPER = {  # nodes, stored entries, features, classes
    "papers100M": Sizes(111_059_956, 3_231_371_744, 128, 128, used_hops(10), 172),
    "1G nodes": Sizes(10**9, 2 * 10**10, 128, 128, used_hops(10), 10),
}
FAULTS = ("worker", "node", "driver")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000000,10000000", help="numbers of nodes; the first on every way")
    parser.add_argument("--ways", default="1 thread,1 worker,2 threads,2 workers,4 workers", help="for the first size")
    parser.add_argument("--largest-way", default="2 workers", help="for the other sizes")
    parser.add_argument("--faults", default=",".join(FAULTS), help="of a run of the first size on two workers")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "degem-scale", help="of the graphs"
    )
    parser.add_argument("--no-write", action="store_true", help="leave benchmarks/results and the page as they are")
    options = parser.parse_args()
    first, *larger = map(int, options.sizes.split(","))
    todo: list[tuple[Any, int, str]] = [(fit_and_score, first, way) for way in filter(None, options.ways.split(","))]
    todo += [(recovered, first, fault) for fault in filter(None, options.faults.split(","))]
    todo += [(fit_and_score, size, options.largest_way) for size in larger]
    rows = []
    for function, size, how in todo:
        rows += measure.in_child(function, size, how, options.folder)
        print(pd.DataFrame(rows[-1:]).T.to_string(header=False), flush=True)
        if not options.no_write:
            measure.write(rows[-1:], "cluster", key=KEY)
    paper = [on_paper(name, machines) for name in PAPER for machines in (16, 64)]
    print(pd.DataFrame(paper).to_string(index=False))
    if not options.no_write:
        measure.write(paper, "cluster_paper", key=["graph", "machines"])
        write_page()


def fit_and_score(size: int, way: str, folder: Path) -> list[dict[str, Any]]:
    """Seconds, memory and bytes moved of a fit and a score, on some workers or with some threads."""
    count, kind = int(way.split()[0]), way.split()[1]
    graph_folder = written(folder, size)
    row: dict[str, Any] = {"what": "fit and score", "nodes": size, "way": way}
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(tempfile.TemporaryDirectory(prefix="degem-store-", dir=folder))
        clock, moved = measure.PhaseClock(), Counter[str]()
        if kind.startswith("worker"):
            start = time.perf_counter()
            address = stack.enter_context(cluster(count))[0].address
            place = Path(store) / "graph"  # the store holds it, so that workers map it as it is
            shutil.copytree(graph_folder, place, copy_function=os.link)
            engine = stack.enter_context(Ray(store, address, clock))
            warmed_up(count)
            row["start_seconds"] = time.perf_counter() - start
            graph, moved = read_memmap(place), engine.moved
        else:
            torch.set_num_threads(count)
            graph = read_memmap(graph_folder)
            DeGEM().fit(measure.planted_graph())
        with summed_memory() as peak:
            start = time.perf_counter()
            detector = DeGEM().fit(graph, on_progress=clock)
            row["fit_seconds"] = time.perf_counter() - start
            for folder_of_stage in Path(store).glob("*-*"):
                shutil.rmtree(folder_of_stage)  # the fit has scored the graph already, to calibrate
            start = time.perf_counter()
            scores = detector.decision_function(graph)
            row["score_seconds"] = time.perf_counter() - start
        row["peak_gib"] = peak[0] / GIB
        row |= {f"{phase} seconds": seconds for phase, seconds in clock.seconds.items()}
        row |= {f"{phase} GiB": size / GIB for phase, size in moved.items()}
        if moved:
            row |= expected(graph, count)
        row["mean_score"] = float(scores.mean())
    return [row]


def expected(graph: Any, count: int) -> dict[str, float]:
    """What the plan says that a fit and a score write, to be held against what they wrote."""
    sizes = Sizes(graph.num_nodes, graph.adjacency.nnz, 128, 128, used_hops(10), graph.num_classes)
    nodes = cluster_of(count, 1, "4G")
    stages = [*planned(sizes, nodes), *planned(sizes, nodes, score_only=True)]
    walked = sum(stage.written for stage in stages if stage.name in WALKS)
    return {"planned propagate written GiB": walked / GIB}


WALKS = ("walk of classes", "propagate", "smooth terms", "smooth classes")


def recovered(size: int, fault: str, folder: Path) -> list[dict[str, Any]]:
    """How many seconds longer propagation takes when a worker, a node or the driver is lost as hop 3 is written."""
    graph_folder, context = written(folder, size), multiprocessing.get_context("spawn")
    row: dict[str, Any] = {"what": "recovery", "nodes": size, "way": fault}
    with tempfile.TemporaryDirectory(prefix="degem-store-", dir=folder) as store, cluster(2) as (there, node):
        for name in ("undisturbed", fault):
            words = (there.address, Path(store) / name, graph_folder)
            start = time.perf_counter()
            driver = context.Process(target=propagate, args=words)
            driver.start()
            while name != "undisturbed" and not list((Path(store) / name).glob("propagate-*/*-3.npy")):
                time.sleep(0.05)
            if name == "worker":
                next(iter(at_work("ray::propagate"))).kill()
            elif name == "node":
                there.remove_node(node, allow_graceful=False)
                there.add_node(**NODE)
            elif name == "driver":
                driver.kill()
                driver.join()
                driver = context.Process(target=propagate, args=words)
                driver.start()
            driver.join()
            if driver.exitcode:
                raise RuntimeError(f"the driver ended with {driver.exitcode}")
            row[f"{name} seconds"] = time.perf_counter() - start
    row["recovery_seconds"] = row[f"{fault} seconds"] - row["undisturbed seconds"]
    return [row]


def propagate(address: str, store: Path, graph_folder: Path) -> None:
    """A driver that propagates 128 columns through ten hops, and no more."""
    graph = read_memmap(graph_folder)
    with Ray(str(store), address):
        choose_propagator(0).keep(graph.adjacency, Columns.of(dense(graph.features)), used_hops(10)).close()


NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 200 << 20, "memory": 3 << 30}


@contextlib.contextmanager
def cluster(count: int) -> Iterator[tuple[Any, Any]]:
    """A head without cores, and so many workers of one core; the cluster and its last worker."""
    from ray.cluster_utils import Cluster

    source = Path(degem.__file__).parents[1]
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": f"{source}:{Path(__file__).parent}"}
    found = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False})
    try:
        nodes = [found.add_node(**NODE) for _ in range(count)]
        yield found, nodes[-1]
    finally:
        found.shutdown()


def warmed_up(count: int) -> None:
    """Let each worker load its libraries and compiled kernels."""
    import ray

    def load() -> None:  # within another function it goes to the worker by value
        import time

        import measure

        from degem import DeGEM

        DeGEM(num_epochs=1).fit(measure.planted_graph())
        time.sleep(1)  # so that each worker has one

    task = ray.remote(load)
    ray.get([task.remote() for _ in range(count)])


def at_work(name: str) -> list[psutil.Process]:
    """Processes whose title begins so."""
    return [found for found in psutil.process_iter(["cmdline"]) if name in " ".join(found.info["cmdline"] or [])]


@contextlib.contextmanager
def summed_memory() -> Iterator[list[float]]:
    """The largest sum of the proportional set sizes of this process, its children and Ray's, in bytes."""
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            peak[0] = max(peak[0], sum(map(_share, [psutil.Process(), *psutil.Process().children(recursive=True)])))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def _share(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        return float(process.memory_full_info().pss)
    return 0.0


def on_paper(name: str, machines: int) -> dict[str, Any]:
    """Hours of a fit on so many machines of 32 cores and 128 GiB, and the stage that dominates."""
    stages = planned(PAPER[name], cluster_of(machines, 32, "128G"))
    total: dict[str, float] = {}
    for stage in stages:
        total[stage.name] = total.get(stage.name, 0.0) + stage.seconds
    longest = max(total, key=lambda stage: total[stage])
    seconds = sum(total.values())
    return {
        "graph": name,
        "machines": machines,
        "hours": seconds / 3600,
        "dominates": longest,
        "share": total[longest] / seconds,
        "edges_gib": PAPER[name].edge_bytes / GIB,
        "task_gib": max(stage.memory for stage in stages if stage.tasks > 1) / GIB,
        "driver_gib": max(stage.memory for stage in stages if stage.tasks == 1) / GIB,
        "store_tib": sum(stage.written for stage in stages) / GIB / 1024,
    }


def written(folder: Path, size: int) -> Path:
    """The generated graph of that size, written if it is not there."""
    home = folder / str(size)
    if not (home / "indptr.npy").exists():
        large_graph.write_graph(home, size)
    return home


def write_page() -> None:
    """Put tables of all rows so far into the page, between its marks."""
    measured, paper = (pd.read_csv(measure.RESULTS / f"{name}.csv") for name in ("cluster", "cluster_paper"))
    runs, faults = (measured[measured["what"] == what] for what in ("fit and score", "recovery"))
    shown = {"runs": runs[RUNS], "bytes": runs[runs["start_seconds"].notna()][BYTES], "paper": paper[PAPER_COLUMNS]}
    if len(faults):
        shown["faults"] = faults[FAULT_COLUMNS]
    page = PAGE.read_text(encoding="utf-8")
    for name, table in shown.items():
        head, rest = page.split(f"<!-- {name} -->\n")
        tail = rest[rest.index("<!-- end -->") :]
        text = measure.markdown_table(table.rename(columns=lambda name: name.replace("_", " ")).map(_text))
        page = f"{head}<!-- {name} -->\n{text}{tail}"
    PAGE.write_text(page, encoding="utf-8")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "–" if value != value else f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


if __name__ == "__main__":
    main()
