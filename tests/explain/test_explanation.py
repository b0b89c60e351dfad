"""Explanations: parts that add up, planted causes that are named, context for every method."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from degem import DeGEM, Detector, Graph
from degem.calibration import ScoreResult
from degem.errors import GraphError
from degem.explain import explain
from degem.explain.hop_parts import HopScored, integrated_gradients
from degem.propagation.hop_features import hop_features, hop_rows

NUM_FEATURES, BLOCK = 12, (4, 5, 6)


@dataclasses.dataclass(kw_only=True, eq=False)
class HopGaussian(Detector):
    """The smallest method with hops: the squared distance of the hop features to the nearest class mean, whitened."""

    paper = "none"
    num_hops = 2

    def _fit(self, training, on_progress):
        hops = self._hops(training.graph)
        labels = np.array(training.graph.labels)
        self.means_ = [
            torch.stack([hop[labels == index].mean(dim=0) for index in range(training.num_classes)]) for hop in hops
        ]
        self.spreads_ = [
            (hop - mean[torch.from_numpy(labels)])[training.nodes].std(dim=0)
            for hop, mean in zip(hops, self.means_, strict=True)
        ]
        return {}

    def _hops(self, graph):
        features = np.ascontiguousarray(graph.features)
        return list(torch.from_numpy(hop_features(graph.adjacency, features, self.num_hops, self_weight=0.5)))

    def _distances(self, hops):
        return sum(
            (((hop[:, None] - mean) / spread) ** 2).sum(dim=2)
            for hop, mean, spread in zip(hops, self.means_, self.spreads_, strict=True)
        )

    def _score(self, graph):
        distances = self._distances(self._hops(graph))
        return ScoreResult(distances.min(dim=1).values.numpy(), torch.softmax(-distances, dim=1).numpy())

    def embed(self, graph, *, nodes=None):
        return torch.cat(self._hops(graph), dim=1).numpy()[slice(None) if nodes is None else nodes]

    def _state(self):
        return {}

    def _restore(self, state):
        pass

    def hop_rows(self, graph, nodes):
        rows = hop_rows(graph.adjacency, graph.features, nodes, self.num_hops, 0.5)
        return [torch.from_numpy(hop) for hop in rows]

    def score_from_hops(self, hops):
        return self._distances(hops).min(dim=1).values

    def hop_reference(self):
        return self.means_


class Opaque(HopGaussian):
    """The same scores from a method without hops or latents."""

    hop_rows = None
    embed = None


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


@pytest.mark.parametrize("seed", range(20))
def test_a_corrupted_feature_block_is_named(seed: int) -> None:
    graph, rng = planted(seed), np.random.default_rng(seed)
    node = int(rng.integers(graph.num_nodes))
    (found,) = explain(HopGaussian().fit(graph), with_corrupted_block(graph, node, rng), node)
    assert {feature.name for feature in found.features[:3]} == {f"column {column}" for column in BLOCK}
    assert found.main_hop == 0
    assert "its own features" in found.summary


@pytest.mark.parametrize("seed", range(20))
def test_a_rewired_node_is_blamed_on_its_neighbourhood(seed: int) -> None:
    graph, rng = planted(seed), np.random.default_rng(seed)
    node = int(rng.choice(np.flatnonzero(graph.degrees >= 4)))
    detector = HopGaussian().fit(graph)
    (before,) = explain(detector, graph, node)
    (after,) = explain(detector, with_rewired_node(graph, node, rng), node)
    assert after.main_hop in (1, 2)
    assert f"hop {after.main_hop}" in after.summary
    assert sum(after.hop_parts) > sum(before.hop_parts)


def test_degem_names_both_kinds_of_fault() -> None:
    """On nearly every seed: what a trained network says of one node is no certainty."""
    block, seeds = {f"column {column}" for column in BLOCK}, range(8)
    right = {"features": 0, "own features": 0, "neighbourhood": 0}
    for seed in seeds:
        graph, rng = planted(seed), np.random.default_rng(seed)
        node = int(rng.choice(np.flatnonzero(graph.degrees >= 4)))
        small = DeGEM(seed=seed, num_hops=2, num_epochs=60)
        detector = small.fit(graph)
        (corrupted,) = explain(detector, with_corrupted_block(graph, node, rng), node)
        right["features"] += {feature.name for feature in corrupted.features[:2]} <= block
        right["own features"] += corrupted.main_hop == 0
        (rewired,) = explain(detector, with_rewired_node(graph, node, rng), node)
        right["neighbourhood"] += rewired.main_hop in (1, 2)
    assert min(right.values()) >= len(seeds) - 2, right


def test_parts_add_up_to_the_rise_of_the_score() -> None:
    graph = planted(0)
    detector = HopGaussian().fit(graph)
    nodes = np.array([3, 14, 15])
    hops, means = detector.hop_rows(graph, nodes), [mean[[0, 2, 0]] for mean in detector.hop_reference()]
    parts = integrated_gradients(detector, hops, means, num_steps=16)
    rise = detector.score_from_hops(hops) - detector.score_from_hops(means)
    np.testing.assert_allclose(parts.sum(axis=(1, 2)), rise.numpy(), rtol=1e-3)


def test_hop_rows_are_rows_of_the_hop_features() -> None:
    graph = planted(1)
    whole = hop_features(graph.adjacency, np.ascontiguousarray(graph.features), 3, self_weight=0.3)
    nodes = np.array([5, 0, 149])
    np.testing.assert_allclose(hop_rows(graph.adjacency, graph.features, nodes, 3, 0.3), whole[:, nodes], atol=1e-5)
    sparse = hop_rows(graph.adjacency, sp.csr_array(graph.features), nodes, 3, 0.3)
    np.testing.assert_allclose(sparse, whole[:, nodes], atol=1e-5)


def test_a_method_without_hops_is_explained_by_its_context() -> None:
    graph = planted(2)
    detector = Opaque().fit(graph)
    (found,) = explain(detector, graph, [7], reference=graph)
    assert "cannot be taken apart" in found.summary
    assert (found.hop_parts, found.features, found.nearest) == ((), (), ())
    neighbours = graph.adjacency[[7]].indices
    assert found.degree == len(neighbours)
    assert found.neighbour_score == pytest.approx(detector.decision_function(graph)[neighbours].mean())


def test_nearest_training_nodes_are_of_its_class_and_not_itself() -> None:
    graph = planted(3)
    (found,) = explain(HopGaussian().fit(graph), graph, [9], reference=graph)
    assert len(found.nearest) == 3
    assert {node.class_name for node in found.nearest} == {"0"}
    assert "9" not in {node.node_id for node in found.nearest}


def test_an_isolated_node_has_an_explanation_that_is_json() -> None:
    graph = planted(4)
    adjacency = sp.lil_array(graph.adjacency)
    adjacency[0, :] = adjacency[:, 0] = 0
    (found,) = explain(HopGaussian().fit(graph), graph.replace(adjacency=sp.csr_array(adjacency)), [0])
    assert "no neighbours" in found.summary
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["neighbour_score"] is None


def test_notebooks_show_text_and_never_markup_of_the_user() -> None:
    graph = planted(5).replace(node_ids=np.array(["<script>alert(1)</script>"] * 150))
    detector = HopGaussian(seed=3).fit(graph)
    shown = explain(detector, graph, [0])[0]._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


@pytest.mark.parametrize("nodes", [[150], [-1], [0.5], [[0]]])
def test_nodes_that_do_not_exist_are_an_error(nodes: list) -> None:
    graph = planted(6)
    with pytest.raises(GraphError, match=r"node"):
        explain(HopGaussian().fit(graph), graph, nodes)


def test_the_protocol_tells_methods_apart() -> None:
    assert isinstance(HopGaussian(), HopScored)
