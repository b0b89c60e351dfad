"""Explanations: parts that add up, planted causes that are named, in the user's words, for every method."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from degem import DeGEM, Detector, Graph, read_graph
from degem.calibration import judge
from degem.detectors.features import ECOD, FeatureKNN
from degem.detectors.latents import KNN
from degem.errors import GraphError
from degem.explain import Explanation, explain
from degem.explain.columns import columns_of
from degem.explain.row_parts import Mixer

NUM_FEATURES, BLOCK = 12, (4, 5, 6)


def planted(seed: int, num_nodes: int = 150) -> Graph:
    rng = np.random.default_rng(seed)
    labels = np.arange(num_nodes) % 3
    features = 2 * rng.standard_normal((3, NUM_FEATURES))[labels] + 0.5 * rng.standard_normal((num_nodes, NUM_FEATURES))
    chance = np.where(labels[:, None] == labels[None, :], 0.12, 0.0)
    edges = np.argwhere(np.triu(rng.random((num_nodes, num_nodes)) < chance, 1))
    names = [f"column {index}" for index in range(NUM_FEATURES)]
    return Graph.from_arrays(features=features, edges=edges, labels=labels, feature_names=names)


def with_corrupted_block(graph: Graph, node: int, rng: np.random.Generator) -> Graph:
    features = np.array(graph.features)
    features[node, BLOCK] += 6 * rng.choice([-1, 1], size=len(BLOCK))
    return graph.replace(features=features)


def with_rewired_node(graph: Graph, node: int, rng: np.random.Generator) -> Graph:
    """As many edges as before, all to nodes of the other classes."""
    adjacency = sp.lil_array(graph.adjacency)
    degree = int(graph.degrees[node])
    adjacency[node, :] = adjacency[:, node] = 0
    for other in rng.choice(np.flatnonzero(graph.labels != graph.labels[node]), degree, replace=False):
        adjacency[node, other] = adjacency[other, node] = 1
    return graph.replace(adjacency=sp.csr_array(adjacency))


def isolated(graph: Graph, node: int) -> Graph:
    adjacency = sp.lil_array(graph.adjacency)
    adjacency[node, :] = adjacency[:, node] = 0
    return graph.replace(adjacency=sp.csr_array(adjacency))


def weighted(graph: Graph) -> Graph:
    upper = sp.triu(graph.adjacency).tocsr()
    upper.data = np.random.default_rng(0).uniform(0.5, 3, upper.nnz).astype(np.float32)
    return graph.replace(adjacency=sp.csr_array(upper + upper.T))


def as_words(graph: Graph) -> Graph:
    rng = np.random.default_rng(0)
    words = sp.csr_array((rng.random((graph.num_nodes, 100)) < 0.1).astype(np.float32))
    return graph.replace(features=words, feature_names=None)


def largest(found: Explanation, kind: str, count: int) -> set[str]:
    named = [part for part in found.parts if part.kind == kind and not part.name.startswith("its other")]
    parts = sorted(named, key=lambda part: -part.amount)
    return {part.name for part in parts[:count]}


@pytest.fixture(scope="module")
def fitted() -> DeGEM:
    return DeGEM(num_hops=3, num_epochs=20).fit(planted(0))


@pytest.mark.parametrize("change", [lambda graph: graph, weighted, as_words, lambda graph: isolated(graph, 3)])
@pytest.mark.parametrize("method", [DeGEM(num_epochs=5), DeGEM(num_hops=1, num_epochs=5), ECOD(), KNN(num_epochs=5)])
def test_parts_add_up_and_leave_nothing_out(method: Detector, change) -> None:
    graph = change(planted(0))
    detector = method.fit(graph)
    scores = detector.decision_function(graph)
    for found in explain(detector, graph, [3, 14, 15]):
        assert found.score == pytest.approx(scores[found.node])
        rise = found.score - found.typical_score
        assert sum(part.amount for part in found.parts) == pytest.approx(rise, abs=1e-6)
        if found.terms:
            assert sum(found.terms.values()) == pytest.approx(rise, abs=1e-3)
        typical = [int(name) for name in found.typical_nodes]
        assert found.node not in typical
        assert found.typical_score == pytest.approx(scores[typical].mean())


@pytest.mark.parametrize("change", [lambda graph: graph, weighted, as_words, lambda graph: isolated(graph, 3)])
def test_a_node_that_is_mixed_with_nothing_has_its_own_score(change) -> None:
    """In a graph that has grown, too: on the scale that scores have there."""
    graph = change(planted(0))
    detector = DeGEM(num_hops=5, num_epochs=5).fit(graph.subgraph(np.arange(120)))
    nodes = np.array([3, 50, 149])
    mixer = Mixer(detector, graph, nodes)
    found = mixer.scores([mixer.mix_of(int(node)) for node in nodes])
    np.testing.assert_allclose(found, detector.decision_function(graph)[nodes], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("change", [lambda graph: graph, weighted])
def test_what_neighbours_bring_is_what_there_is_around_a_node(fitted: DeGEM, change) -> None:
    graph = change(planted(0))
    node = int(np.argmax(graph.degrees))
    row = graph.adjacency[[node]]
    mixer = Mixer(fitted.fit(graph), graph, np.append(row.indices, node))
    brought = [mixer.brought_by(int(other), node, weight) for other, weight in zip(row.indices, row.data, strict=True)]
    np.testing.assert_allclose(np.average(brought, axis=0, weights=row.data), mixer.mix_of(node).around, atol=1e-5)


def test_degem_names_both_kinds_of_fault() -> None:
    """On nearly every seed: what a trained network says of one node is no certainty."""
    block, seeds = {f"column {column}" for column in BLOCK}, range(6)
    right = {"columns": 0, "own": 0, "elsewhere": 0}
    for seed in seeds:
        graph, rng = planted(seed), np.random.default_rng(seed)
        node = int(rng.choice(np.flatnonzero(graph.degrees >= 4)))
        detector = DeGEM(seed=seed, num_hops=3, num_epochs=60).fit(graph)
        (corrupted,) = explain(detector, with_corrupted_block(graph, node, rng), node)
        right["columns"] += largest(corrupted, "own", 2) <= block
        right["own"] += corrupted.total("own") > corrupted.total("neighbours") + corrupted.total("surroundings")
        (rewired,) = explain(detector, with_rewired_node(graph, node, rng), node)
        right["elsewhere"] += rewired.total("neighbours") + rewired.total("surroundings") > 2 * rewired.total("own")
    assert min(right.values()) >= len(seeds) - 1, right


def test_a_strange_neighbour_among_usual_ones_is_named(fitted: DeGEM) -> None:
    graph = planted(0)
    fitted.fit(graph)
    node = int(np.argmax(graph.degrees))
    stranger = int(np.flatnonzero(graph.labels != graph.labels[node])[0])
    adjacency = sp.lil_array(graph.adjacency)
    adjacency[node, stranger] = adjacency[stranger, node] = 1
    (found,) = explain(fitted, graph.replace(adjacency=sp.csr_array(adjacency)), node)
    assert largest(found, "neighbours", 1) == {f"neighbour {stranger}"}


@pytest.mark.parametrize("seed", range(5))
def test_any_method_has_its_columns_named(seed: int) -> None:
    graph, rng = planted(seed), np.random.default_rng(seed)
    node = int(rng.integers(graph.num_nodes))
    (found,) = explain(FeatureKNN().fit(graph), with_corrupted_block(graph, node, rng), node)
    assert largest(found, "own", 1) <= {f"column {column}" for column in BLOCK}
    assert found.total("surroundings") == pytest.approx(0, abs=1e-6)  # of a method that looks at features alone


def test_values_and_ranges_are_in_the_users_units(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    nodes = pd.DataFrame(
        {"id": np.arange(600), "balance": rng.normal(1000, 10, 600).round(), "paid": rng.random(600) < 0.9}
    )
    nodes["country"] = rng.choice(["DE", "FR"], 600, p=[0.8, 0.2])
    nodes["joined"] = pd.date_range("2020-01-01", periods=600).astype(str)
    nodes.loc[5, "balance"] = 5000
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    pd.DataFrame({"a": np.arange(599), "b": np.arange(1, 600)}).to_csv(tmp_path / "edges.csv", index=False)
    graph = read_graph(tmp_path)
    detector = FeatureKNN().fit(graph)
    (found,) = explain(detector, graph, [5])
    assert not found.is_ordinary
    part = max(found.parts, key=lambda part: part.amount)
    assert part.name == "balance"
    value, usual = part.detail.split(", usual ")
    low, high = map(float, usual.split(" – "))
    assert (value, 980 < low < 1000 < high < 1020) == ("5000", True)
    assert "balance (5000, usual" in found.summary
    told = {column.name: column for column in columns_of(detector, graph)}
    row = np.asarray(graph.features)[5]
    for name, value in {
        "country": nodes["country"][5],
        "paid": str(nodes["paid"][5]).lower(),
        "joined": "January",
    }.items():
        assert told[name].told(row[told[name].positions]) == value
    assert told["country"].usual(np.asarray(graph.features)[:, told["country"].positions]).startswith("DE 79%, FR")


def test_an_ordinary_node_is_said_to_be_ordinary(fitted: DeGEM) -> None:
    graph = planted(0)
    fitted.fit(graph)
    node = int(np.argsort(fitted.decision_function(graph))[10])
    (found,) = explain(fitted, graph, [node])
    assert found.is_ordinary
    assert found.summary.startswith("Ordinary: ")


def test_nearest_training_nodes_are_of_its_class_and_not_itself(fitted: DeGEM) -> None:
    graph = planted(3)
    (found,) = explain(fitted.fit(graph), graph, [9], reference=graph)
    assert len(found.nearest) == 3
    assert {node.class_name for node in found.nearest} == {"0"}
    assert "9" not in {node.node_id for node in found.nearest}


def test_an_isolated_node_has_an_explanation_that_is_json(fitted: DeGEM) -> None:
    graph = planted(4)
    (found,) = explain(fitted.fit(graph), isolated(graph, 0), [0])
    assert "no neighbours" in found.summary
    assert largest(found, "neighbours", 1) == {"having no neighbours"}
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["neighbour_p_value"] is None


def test_nothing_to_explain_is_no_error(fitted: DeGEM) -> None:
    graph = planted(0)
    assert explain(fitted.fit(graph), graph, np.zeros(graph.num_nodes, dtype=bool)) == []


def test_notebooks_show_text_and_never_markup_of_the_user() -> None:
    graph = planted(5).replace(node_ids=np.array(["<script>alert(1)</script>"] * 150))
    detector = ECOD().fit(graph)
    shown = explain(detector, graph, [0], judged=judge(detector, graph))[0]._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


@pytest.mark.parametrize("nodes", [[150], [-1], [0.5], [[0]]])
def test_nodes_that_do_not_exist_are_an_error(nodes: list) -> None:
    graph = planted(6)
    with pytest.raises(GraphError, match=r"node"):
        explain(ECOD().fit(graph), graph, nodes)
