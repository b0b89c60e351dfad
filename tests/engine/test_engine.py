"""On a cluster as on one machine: the same bits of hops, the same scores, by Python and by the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from degem import Detector, Graph
from degem.cli import main
from degem.data.archives import write_npz
from degem.detectors.registry import METHODS
from degem.engine import Ray
from degem.engine.cluster import connected
from degem.engine.plan import Node, divided
from degem.errors import DegemError
from degem.propagation import Columns, Propagator, choose_propagator
from degem.training import Progress

pytestmark = pytest.mark.xdist_group("ray")
SETTINGS = {"degem": {"num_epochs": 2}}
SPREAD = ["degem", "iforest", "ecod", "feature-knn", "degree", "nonzeros", "norm"]


def weighted(graph: Graph) -> Graph:
    adjacency = graph.adjacency.copy()
    adjacency.data = 1 + (adjacency + adjacency.T).data * np.float32(0.5)
    return graph.replace(adjacency=adjacency)


@pytest.mark.parametrize("graph_of", [lambda graph: graph, weighted], ids=["plain", "weighted"])
def test_hops_are_the_bits_of_one_machine(cluster: Any, small_graph: Graph, tmp_path: Path, graph_of: Any) -> None:
    graph = graph_of(small_graph)
    values = np.random.default_rng(0).standard_normal((120, 40)).astype(np.float32)
    columns, order, how = Columns.of(values), np.random.default_rng(1).permutation(120), {"self_weight": 0.5}
    with Propagator().keep(graph.adjacency, columns, (0, 2, 3), **how, weight=0.7) as kept:
        whole = kept.rows(slice(0, 120))
    some = Propagator().sample(graph.adjacency, columns.permuted(order), (1, 3), np.array([7, 3, 7]), **how)
    with Ray(str(tmp_path), cluster.address):
        propagator = choose_propagator(0)
        with propagator.keep(graph.adjacency, columns, (0, 2, 3), **how, weight=0.7) as kept:
            np.testing.assert_array_equal(kept.rows(slice(0, 120)), whole)
            np.testing.assert_array_equal(kept.rows(slice(5, 9)), whole[:, 5:9])
        found = propagator.sample(graph.adjacency, columns.permuted(order), (1, 3), np.array([7, 3, 7]), **how)
        np.testing.assert_array_equal(found, some)
        with propagator.keep(graph.adjacency, Columns.of(2 * values), (0, 2, 3), **how, weight=0.7) as kept:
            np.testing.assert_array_equal(kept.rows(slice(0, 120)), 2 * whole)  # not what the store has of others


@pytest.mark.parametrize("method", sorted(METHODS))
def test_scores_are_those_of_one_machine_or_one_line_says_why_not(
    cluster: Any, small_graph: Graph, tmp_path: Path, method: str
) -> None:
    detector = Detector.registry[method](**SETTINGS.get(method, {}))
    with Ray(str(tmp_path), cluster.address):
        if detector.one_machine is not None:
            with pytest.raises(DegemError, match=f"^{method.replace('+', '[+]')} runs on one machine, .*: .+"):
                detector.fit(small_graph)
            return
        scores = detector.fit(small_graph).decision_function(small_graph)
    assert method in SPREAD
    np.testing.assert_allclose(detector.decision_function(small_graph), scores, rtol=1e-5, atol=1e-5)
    alone = Detector.registry[method](**SETTINGS.get(method, {})).fit(small_graph)
    np.testing.assert_allclose(alone.decision_function(small_graph), scores, rtol=1e-4, atol=1e-4)


def command(*words: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    return int(stop.value.code or 0)


def test_the_command_fits_and_scores_as_on_one_machine(
    cluster: Any, small_graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, model = tmp_path / "graph.npz", tmp_path / "model"
    write_npz(small_graph, graph)
    place = ["--engine", "ray", "--address", cluster.address, "--store", tmp_path / "store"]
    assert command("fit", graph, "--out", model, "--set", "num_epochs=2", *place) == 0
    assert command("score", model, graph, "--out", tmp_path / "a.csv", *place) == 0
    assert command("score", model, graph, "--out", tmp_path / "b.csv") == 0
    there, here = (pd.read_csv(tmp_path / name) for name in ("a.csv", "b.csv"))
    pd.testing.assert_frame_equal(there, here)
    capsys.readouterr()
    assert command("fit", graph, "--out", tmp_path / "x", "--engine", "ray") == 2
    assert "--engine ray needs --store URI" in capsys.readouterr().err
    assert command("fit", graph, "--out", tmp_path / "x", "--store", tmp_path) == 2
    assert "belong to --engine ray" in capsys.readouterr().err


def test_a_plan_tells_stages_and_what_dominates(
    small_graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = tmp_path / "graph.npz"
    write_npz(small_graph, graph)
    sizes = ["--nodes", 16, "--cpus", 32, "--memory", "128G"]
    assert command("fit", graph, "--engine", "ray", "--dry-run", *sizes) == 0
    told = capsys.readouterr().out
    assert "look at features" in told
    assert "16 nodes" in told
    assert command("fit", graph, "--engine", "ray", "--dry-run", "--memory", "much") == 2
    assert "--memory much: write it as 128G" in capsys.readouterr().err


def test_progress_tells_tasks_and_bytes(cluster: Any, small_graph: Graph, tmp_path: Path) -> None:
    heard: list[Progress] = []
    with Ray(str(tmp_path), cluster.address, heard.append) as engine:
        columns = Columns.of(np.ones((120, 40), dtype=np.float32))
        choose_propagator(0).keep(small_graph.adjacency, columns, (0, 2)).close()
    assert [(progress.phase, progress.done, progress.total) for progress in heard] == [
        ("propagate", 0, 2),
        ("propagate", 1, 2),
        ("propagate", 2, 2),
    ]
    assert engine.moved["propagate written"] == 2 * 4 * 120 * 40  # two hops


def test_columns_are_divided_by_what_a_worker_holds() -> None:
    assert divided(1000, 128, [Node(1, 1e9)] * 2).columns == 64
    assert divided(1000, 128, [Node(4, 1e9)] * 2).columns == 16
    assert divided(10**8, 128, [Node(4, 8e9)] * 2).columns == 6
    assert divided(10**7, 128, [Node(1, 4e9)] * 2).columns == 16  # not 30: a line of memory is read whole
    with pytest.raises(DegemError, match=r"one column of 10,000,000,000 nodes takes 74.5 GiB on its way"):
        divided(10**10, 128, [Node(4, 8e9)])
    with pytest.raises(DegemError, match="no node with a core"):
        divided(1000, 128, [])


def test_a_cluster_that_is_not_there_is_one_line() -> None:
    with (
        patch("ray.is_initialized", return_value=False),
        pytest.raises(DegemError, match=r"--address 127.0.0.1:1: nothing answers there"),
        connected("127.0.0.1:1"),
    ):
        pass


def test_the_benchmark_gives_the_rows_of_the_local_runner(cluster: Any, data_dir: Path, tmp_path: Path) -> None:
    what = ["main", "--methods", "degree,norm", "--datasets", "cornell", "--seeds", 1, "--protocol", "strict"]
    for folder, engine in (("there", ["--engine", "ray", "--address", cluster.address]), ("here", ["--workers", "1"])):
        assert command("bench", "run", *what, "--data-dir", data_dir, "--out", tmp_path / folder, *engine) == 0
    there, here = (
        pd.read_csv(tmp_path / folder / "results.csv").sort_values(["method", "shift"]) for folder in ("there", "here")
    )
    same = ["method", "dataset", "shift", "seed", "protocol", "auroc", "aupr", "fpr95", "parameters"]
    pd.testing.assert_frame_equal(there[same].reset_index(drop=True), here[same].reset_index(drop=True))
    assert there["error"].isna().all()
