"""Partitioned Parquet becomes the graph that its tables say, whatever the order of files and rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from degem import Graph
from degem.cli import main
from degem.engine import Ray, is_partitioned, read_partitioned
from degem.errors import DegemError

pytestmark = pytest.mark.xdist_group("ray")


def write_parts(folder: Path, name: str, table: pd.DataFrame, count: int) -> None:
    (folder / name).mkdir(parents=True)
    for place, rows in enumerate(np.array_split(np.arange(len(table)), count)):
        table.iloc[rows].to_parquet(folder / name / f"part-{place}.parquet", index=False)


def tables_of(graph: Graph, ids: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    features = {f"x{column}": values for column, values in enumerate(np.asarray(graph.features).T)}
    nodes = pd.DataFrame({"id": ids, "label": graph.labels, "train_mask": graph.labels > 0, **features})
    rows, columns = graph.adjacency.nonzero()
    one_way = rows < columns
    edges = pd.DataFrame({"source": ids[rows[one_way]], "target": ids[columns[one_way]]})
    twice = pd.concat([edges, edges.iloc[:9].rename(columns={"source": "target", "target": "source"})])
    loop = pd.DataFrame({"source": ids[:1], "target": ids[:1]})
    return nodes, pd.concat([twice, loop]).sample(frac=1, random_state=rng.integers(99))


@pytest.mark.parametrize("text", [False, True])
def test_it_is_the_graph_of_the_tables(cluster: Any, small_graph: Graph, tmp_path: Path, text: bool) -> None:
    numbers = np.random.default_rng(1).permutation(10_000)[:120] - 5000
    ids = np.array([f"node {number}" for number in numbers], dtype=object) if text else numbers
    nodes, edges = tables_of(small_graph, ids)
    write_parts(tmp_path / "graph", "nodes", nodes, 3)
    write_parts(tmp_path / "graph", "edges", edges, 4)
    assert is_partitioned(tmp_path / "graph")
    for _ in range(2):  # the second time from the store
        with Ray(str(tmp_path / "store"), cluster.address) as engine:
            graph = read_partitioned(engine, tmp_path / "graph")
    np.testing.assert_array_equal(graph.adjacency.toarray(), small_graph.adjacency.toarray())
    np.testing.assert_array_equal(graph.features, small_graph.features)
    np.testing.assert_array_equal(graph.labels, small_graph.labels)
    np.testing.assert_array_equal(graph.masks["train"], small_graph.labels > 0)
    assert graph.node_ids.tolist() == ids.tolist()


@pytest.mark.parametrize("fault", ["stranger", "twin", "text"])
def test_what_is_wrong_in_the_tables_is_one_line(cluster: Any, small_graph: Graph, tmp_path: Path, fault: str) -> None:
    nodes, edges = tables_of(small_graph, np.arange(120))
    lines = {"stranger": "2 edges or more end at ids that the nodes lack", "twin": "two nodes have the same id"}
    if fault == "stranger":
        edges.iloc[[3, 7], 1] = 999
    elif fault == "twin":
        nodes.loc[100, "id"] = 3
    else:
        nodes["x3"] = "red"
    write_parts(tmp_path / "graph", "nodes", nodes, 2)
    write_parts(tmp_path / "graph", "edges", edges, 1)
    with (
        Ray(str(tmp_path / "store"), cluster.address) as engine,
        pytest.raises(DegemError, match=lines.get(fault, "column 'x3' is no number")),
    ):
        read_partitioned(engine, tmp_path / "graph")


def test_the_command_reads_and_writes_partitioned_parquet(cluster: Any, small_graph: Graph, tmp_path: Path) -> None:
    ids = np.random.default_rng(1).permutation(120)
    nodes, edges = tables_of(small_graph, ids)
    write_parts(tmp_path / "graph", "nodes", nodes.drop(columns="train_mask"), 2)
    write_parts(tmp_path / "graph", "edges", edges, 2)
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores" / "part-00001.parquet").touch()  # of an earlier, longer table
    place = ["--engine", "ray", "--address", cluster.address, "--store", str(tmp_path / "store")]
    for words in (
        ["fit", "--out", str(tmp_path / "model"), "--set", "num_epochs=2"],
        ["score", str(tmp_path / "model"), "--out", str(tmp_path / "scores")],
    ):
        with pytest.raises(SystemExit) as stop:
            main([*words, str(tmp_path / "graph"), *place])
        assert not stop.value.code
    scores = pd.read_parquet(tmp_path / "scores")
    assert scores["node_id"].tolist() == ids.tolist()
    assert np.isfinite(scores["score"]).all()
