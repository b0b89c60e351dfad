"""Whatever is lost, a run ends with the same bits, or stops with one clear line and goes on when repeated."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from degem import DeGEM, Graph, read_graph
from degem.data.archives import write_npz
from degem.engine import Ray
from degem.errors import DegemError
from degem.propagation import Columns, Propagator, choose_propagator

pytestmark = pytest.mark.xdist_group("ray")
HOPS, WIDTH = [0, 1, 2, 4], 64
MOMENTS = random.Random(5)  # the same moments each time, none of them chosen


def harmful(values: np.ndarray, trigger: Path, harm: Callable[[], Any] | None = None) -> Columns:
    """Columns that take a while to make, and do harm in the worker as long as a file is there."""
    path = str(trigger)

    def block(rows: slice, columns: slice) -> np.ndarray:
        time.sleep(0.2)
        if harm is not None and Path(path).exists():
            harm()
        return values[rows, columns]

    return Columns.by_block(values.shape[1], block)


def hops_of(graph: Graph, columns: Columns) -> np.ndarray:
    with choose_propagator(0).keep(graph.adjacency, columns, HOPS) as kept:
        return kept.rows(slice(0, graph.num_nodes))


@pytest.fixture
def values(small_graph: Graph) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((small_graph.num_nodes, WIDTH)).astype(np.float32)


@pytest.fixture
def expected(small_graph: Graph, values: np.ndarray) -> np.ndarray:
    with Propagator().keep(small_graph.adjacency, Columns.of(values), HOPS) as kept:
        return kept.rows(slice(0, small_graph.num_nodes))


@pytest.fixture
def sixteen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strips of sixteen columns: four tasks."""
    monkeypatch.setattr("degem.engine.plan.MEMORY_SHARE", 16 * 8 * 120 / (4 << 30))


def workers() -> list[psutil.Process]:
    """The processes that are at a task of propagation."""
    return [
        found for found in psutil.process_iter(["cmdline"]) if "ray::propagate" in " ".join(found.info["cmdline"] or [])
    ]


@pytest.mark.usefixtures("sixteen")
@pytest.mark.parametrize("moment", [MOMENTS.uniform(0, 0.6) for _ in range(3)])
def test_a_killed_worker_is_replaced(
    cluster: Any, small_graph: Graph, values: np.ndarray, expected: np.ndarray, tmp_path: Path, moment: float
) -> None:
    killed: list[int] = []

    def kill() -> None:
        while not (found := workers()):
            time.sleep(0.01)
        time.sleep(moment)
        for process in workers() or found:
            process.kill()
            killed.append(process.pid)
            return

    thread = threading.Thread(target=kill)
    thread.start()
    with Ray(str(tmp_path), cluster.address):
        found = hops_of(small_graph, harmful(values, tmp_path / "trigger"))
    thread.join()
    assert len(killed) == 1
    np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("sixteen")
def test_a_node_that_goes_is_done_without(
    cluster: Any, small_graph: Graph, values: np.ndarray, expected: np.ndarray, tmp_path: Path
) -> None:
    node = cluster.add_node(num_cpus=1, object_store_memory=100 << 20, memory=4 << 30)
    timer = threading.Timer(MOMENTS.uniform(0.1, 0.6), cluster.remove_node, [node], {"allow_graceful": False})
    with Ray(str(tmp_path), cluster.address):
        timer.start()
        found = hops_of(small_graph, harmful(values, tmp_path / "trigger"))
    timer.join()
    np.testing.assert_array_equal(found, expected)


def full() -> Callable[[], None]:
    def no_space() -> None:
        import errno
        import os

        whole = os.fsync

        def fsync(_: int) -> None:
            os.fsync = whole  # the worker has other tests to do
            raise OSError(errno.ENOSPC, "No space left on device")

        os.fsync = fsync

    return no_space


def out_of_memory() -> Callable[[], None]:
    def too_large() -> None:
        raise MemoryError

    return too_large


def shot() -> Callable[[], None]:
    def kill() -> None:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    return kill


@pytest.mark.usefixtures("sixteen")
@pytest.mark.parametrize(
    ("harm", "line"),
    [
        (full(), "propagate .*cannot be written: the disk is full: make space"),
        (out_of_memory(), "a worker has too little memory for propagate"),
        (shot(), "failed 2 times for lost workers: run the same command again, which goes on from here"),
    ],
    ids=["full", "memory", "shot"],
)
def test_what_cannot_go_on_says_so_and_goes_on_later(
    cluster: Any,
    small_graph: Graph,
    values: np.ndarray,
    expected: np.ndarray,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    harm: Callable[[], None],
    line: str,
) -> None:
    monkeypatch.setattr("degem.engine.cluster.TRIES", 2)
    columns = harmful(values, tmp_path / "trigger", harm)
    with Ray(str(tmp_path), cluster.address):
        (tmp_path / "trigger").touch()
        with pytest.raises(DegemError, match=line) as error:
            hops_of(small_graph, columns)
        assert "\n" not in str(error.value)
    (tmp_path / "trigger").unlink()
    with Ray(str(tmp_path), cluster.address):
        found = hops_of(small_graph, columns)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("sixteen")
def test_what_is_there_is_not_made_again(
    cluster: Any, small_graph: Graph, values: np.ndarray, expected: np.ndarray, tmp_path: Path
) -> None:
    def again() -> None:
        raise AssertionError("made again")

    columns = harmful(values, tmp_path / "trigger", again)
    with Ray(str(tmp_path), cluster.address):
        hops_of(small_graph, columns)
    files = sorted(tmp_path.glob("propagate-*/*.npy"))
    assert len(files) == 4 * len(HOPS)
    (tmp_path / "trigger").touch()
    for file in files:
        if file.name.startswith("16-32") and not file.name.endswith(("-0.npy", "-1.npy")):
            file.unlink()  # as if a worker had been stopped between hop 1 and hop 2
    with Ray(str(tmp_path), cluster.address):
        np.testing.assert_array_equal(hops_of(small_graph, columns), expected)
    assert sorted(tmp_path.glob("propagate-*/*.npy")) == files


DRIVER = """
import sys
from degem import DeGEM, read_graph
from degem.engine import Ray
with Ray(sys.argv[1], sys.argv[2]):
    DeGEM(num_epochs=2).fit(read_graph(sys.argv[3])).save(sys.argv[4])
"""


def test_a_killed_driver_goes_on_where_it_was(cluster: Any, small_graph: Graph, tmp_path: Path) -> None:
    write_npz(small_graph, tmp_path / "graph.npz")
    store, words = tmp_path / "store", [sys.executable, "-c", DRIVER, str(tmp_path / "store"), cluster.address]
    words += [str(tmp_path / "graph.npz"), str(tmp_path / "model")]
    driver, stages = subprocess.Popen(words), MOMENTS.randint(2, 6)
    while len(list(store.glob("*-*"))) < stages and driver.poll() is None:
        time.sleep(0.02)
    driver.kill()
    driver.wait()
    assert not (tmp_path / "model").exists()
    there = {file: file.stat().st_mtime_ns for file in store.glob("*-*/*.npy")}
    assert there
    assert subprocess.run(words, check=False).returncode == 0
    assert {file: file.stat().st_mtime_ns for file in there} == there
    with Ray(str(tmp_path / "other"), cluster.address):
        DeGEM(num_epochs=2).fit(read_graph(tmp_path / "graph.npz")).save(tmp_path / "undisturbed")
    resumed, undisturbed = (next((tmp_path / name).glob("*.safetensors")) for name in ("model", "undisturbed"))
    assert resumed.read_bytes() == undisturbed.read_bytes()
