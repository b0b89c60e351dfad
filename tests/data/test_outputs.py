"""Outputs of one's own network: wrapped, read from files, and what is wrong with them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from degem import Graph, wrap
from degem.data.outputs import num_logits, read_outputs
from degem.errors import GraphError

LABELS = np.arange(12) % 3


@pytest.fixture
def graph() -> Graph:
    return Graph.from_arrays(
        features=np.ones((12, 2)),
        edges=[(i, i + 1) for i in range(11)],
        labels=LABELS,
        node_ids=[f"n{i}" for i in range(12)],
        class_names=["blue", "green", "red"],
    )


def test_outputs_stand_where_features_did(graph: Graph) -> None:
    logits, embeddings = np.eye(12, 3), torch.ones(12, 4, requires_grad=True)
    seen = wrap(graph, logits=logits, embeddings=embeddings)
    np.testing.assert_array_equal(seen.features, np.hstack([logits, np.ones((12, 4))]))
    assert seen.feature_names[:4] == ("logit blue", "logit green", "logit red", "embedding 0")
    assert num_logits(seen.feature_names) == 3
    assert num_logits(wrap(graph, embeddings=embeddings).feature_names) == 0
    assert seen.num_edges == 11


def test_classes_are_told_by_the_names_of_the_columns(graph: Graph) -> None:
    seen = wrap(graph, logits=np.zeros((12, 3)), class_names=["red", "blue", "grey"])
    assert seen.class_names == ("red", "blue", "grey")
    assert seen.labels[:3].tolist() == [1, -1, 0]  # the network knows no green
    with pytest.raises(GraphError, match="no column of logits is called like a class"):
        wrap(graph, logits=np.zeros((12, 3)), class_names=["0", "1", "2"])


def test_labelled_nodes_that_the_network_was_not_trained_on_calibrate(graph: Graph) -> None:
    labels = np.where(np.arange(12) < 8, LABELS, -1)
    seen = wrap(graph, logits=np.zeros((12, 3)), labels=labels, train=[0, 1, 2])
    assert np.flatnonzero(seen.masks["train"]).tolist() == [0, 1, 2]
    assert np.flatnonzero(seen.masks["val"]).tolist() == [3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing to wrap"),
        ({"logits": np.zeros((3, 3))}, "3 rows, but there are 12 nodes"),
        ({"logits": np.zeros(12)}, "of shape"),
        ({"logits": np.zeros((12, 2))}, "2 columns of logits, but 3 classes"),
        ({"logits": np.zeros((12, 3)), "class_names": ["red"]}, "1 class names for 3 columns"),
        ({"embeddings": np.full((12, 2), np.nan)}, "NaN"),
    ],
)
def test_what_does_not_fit_is_told(graph: Graph, given: dict, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        wrap(graph, **given)


def test_files_by_place_and_by_id(graph: Graph, tmp_path: Path) -> None:
    values = np.arange(24, dtype=np.float32).reshape(12, 2)
    np.save(tmp_path / "z.npy", values)
    table = pd.DataFrame({"id": graph.node_ids, "red": values[:, 0], "blue": values[:, 1]})
    table.sample(frac=1, random_state=0).to_csv(tmp_path / "z.csv", index=False)
    table[::-1].to_parquet(tmp_path / "z.parquet", index=False)
    for name, columns in (("z.npy", None), ("z.csv", ["red", "blue"]), ("z.parquet", ["red", "blue"])):
        read, found = read_outputs(tmp_path / name, graph)
        np.testing.assert_array_equal(read, values)
        assert found == columns
    table[1:].to_csv(tmp_path / "short.csv", index=False)
    with pytest.raises(GraphError, match="no row of node 'n0'"):
        read_outputs(tmp_path / "short.csv", graph)


def test_files_that_hold_no_outputs(graph: Graph, tmp_path: Path) -> None:
    np.save(tmp_path / "pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "ids.csv").write_text("id\nn0\n")
    for name, message in (("pickled.npy", "cannot be read"), ("ids.csv", "ids alone"), ("z.txt", "an .npy, a .csv")):
        with pytest.raises(GraphError, match=message):
            read_outputs(tmp_path / name, graph)
