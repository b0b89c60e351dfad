"""Arrivals: who is absent at fitting, what joins, and that ids stay."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from degem import Graph
from degem.data.splits import random_split
from degem.errors import DegemError
from degem.shifts import Arrival, Settings, load_arrival
from degem.shifts.arrival import fraud, later_years, left_out, manipulated, num_ood, other_networks, rewire
from degem.shifts.arrival_scenarios import arrivals_of

NUM_NODES = 300


@pytest.fixture
def graph() -> Graph:
    rng = np.random.default_rng(0)
    edges = np.unique(np.sort(rng.integers(NUM_NODES, size=(900, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    return Graph.from_arrays(
        features=rng.random((NUM_NODES, 4)),
        edges=np.concatenate([edges, edges[:, ::-1]]),
        labels=np.arange(NUM_NODES) % 3,
        columns={"year": 2012 + np.arange(NUM_NODES) % 9, "is_fraud": np.arange(NUM_NODES) % 10 == 0},
    )


MADE: dict[str, Callable[[Graph], Arrival]] = {
    "manipulated": lambda graph: manipulated(graph, random_split(graph.labelled, 0), Settings()),
    "left_out": lambda graph: left_out(graph, random_split(graph.labels == 2, 0), 1, Settings()),
    "fraud": lambda graph: fraud(graph, Settings()),
    "later_years": lambda graph: later_years(graph, Settings()),
    "other_networks": lambda graph: other_networks(graph, random_split(graph.labelled, 0), {"a": graph}, Settings()),
}


@pytest.mark.parametrize("kind", MADE)
def test_arrived_nodes_are_absent_at_fitting_and_the_others_keep_their_ids(kind: str, graph: Graph) -> None:
    arrival = MADE[kind](graph)
    known = set(arrival.train_graph.node_ids.tolist())
    for growth in arrival.grown.values():
        ids = growth.graph.node_ids
        arrived = set(ids[growth.new_id].tolist()) | set(ids[growth.ood].tolist())
        assert len(set(ids.tolist())) == growth.graph.num_nodes
        assert len(arrived) == len(growth.new_id) + len(growth.ood)
        assert known <= set(ids.tolist())
        assert not arrived & known
        assert not growth.graph.labelled.any()
        assert not growth.graph.masks


@pytest.mark.parametrize("kind", ["manipulated", "left_out", "later_years", "other_networks"])
def test_training_graphs_have_masks_and_no_label_elsewhere(kind: str, graph: Graph) -> None:
    known = MADE[kind](graph).train_graph
    assert set(known.masks) == {"train", "val"}
    assert (known.labelled == (known.masks["train"] | known.masks["val"])).all()


def test_structure_moves_edges_and_feature_moves_rows_of_the_ood_nodes_alone(graph: Graph) -> None:
    grown = MADE["manipulated"](graph).grown
    ood = grown["feature"].ood
    assert len(ood) == num_ood(NUM_NODES) == 20
    np.testing.assert_array_equal(ood, grown["structure"].ood)
    changed = (grown["feature"].graph.features != graph.features).any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(changed), ood)
    assert (grown["feature"].graph.adjacency != graph.adjacency).nnz == 0
    np.testing.assert_array_equal(grown["structure"].graph.features, graph.features)
    rest = np.setdiff1d(np.arange(NUM_NODES), ood)
    moved = grown["structure"].graph.adjacency != graph.adjacency
    assert moved.nnz > 0
    assert moved[rest][:, rest].nnz == 0


def test_a_rewired_node_keeps_its_degree(graph: Graph) -> None:
    wired = rewire(graph.adjacency, np.array([3, 7]), np.random.default_rng(0))
    gained = np.diff(wired.indptr)[[3, 7]] - graph.degrees[[3, 7]]
    assert ((gained == 0) | (gained == 1)).all()
    assert (wired != wired.T).nnz == 0
    assert wired.diagonal().sum() == 0


def test_other_nodes_of_left_out_classes_never_exist(graph: Graph) -> None:
    growth = MADE["left_out"](graph).grown["label"]
    truth = graph.labels[growth.graph.node_ids]
    assert set(truth[growth.ood]) == {0}
    assert int((truth == 0).sum()) == len(growth.ood) == 20
    assert 1 not in truth
    np.testing.assert_array_equal(growth.labels, truth[growth.new_id])


def test_papers_of_one_later_year_arrive(graph: Graph) -> None:
    for year, growth in MADE["later_years"](graph).grown.items():
        at = graph.columns["year"][growth.graph.node_ids]
        assert set(at[growth.ood]) == {int(year)}
        assert (np.delete(at, growth.ood) <= 2015).all()


def test_no_fraud_is_fitted_on_and_a_fifth_of_the_others_arrives(graph: Graph) -> None:
    arrival = MADE["fraud"](graph)
    assert not graph.columns["is_fraud"][arrival.train_graph.node_ids].any()
    assert not arrival.train_graph.masks
    assert len(arrival.grown["fraud"].new_id) == 54


def test_another_network_has_no_edge_to_the_first(graph: Graph) -> None:
    growth = MADE["other_networks"](graph).grown["a"]
    inside = np.setdiff1d(np.arange(growth.graph.num_nodes), growth.ood)
    assert growth.graph.adjacency[inside][:, growth.ood].nnz == 0
    assert (growth.graph.subgraph(growth.ood).adjacency != graph.adjacency).nnz == 0


def test_names() -> None:
    assert arrivals_of("citation-citation") == ("acm", "dblp")
    assert arrivals_of("twitch") == ("ES", "FR", "RU")
    with pytest.raises(DegemError, match="amazon-fraud has no arrival of the kind 'label': it has fraud"):
        load_arrival("amazon-fraud", "label", Settings())


def test_accounts_keep_their_raw_features(data_dir: Path) -> None:
    arrival = load_arrival("amazon-fraud", "fraud", Settings(), data_dir)
    assert arrival.grown["fraud"].graph.features.max() == 5525
    assert len(arrival.grown["fraud"].ood) == 693
