"""DeGEM's default: what it reaches on an easy shift, with and without labels, and what it is made of."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from degem import DeGEM, Graph
from degem.detectors.degem import hop_inputs
from degem.detectors.degem.combine import combine
from degem.detectors.degem.detector import used_hops
from degem.detectors.degem.hold_out import hold_out
from degem.detectors.split import TrainingSet
from degem.metrics import auroc_ood_positive


def corrupted(graph: Graph, seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    noise = 6 * rng.standard_normal(graph.features.shape)
    return graph.replace(features=(np.asarray(graph.features) + noise).astype(np.float32))


@pytest.mark.parametrize("labels", ["all", "one class", "none"])
def test_finds_corrupted_features_with_and_without_labels(small_graph: Graph, labels: str) -> None:
    known = {"all": small_graph.labels, "none": np.full(120, -1), "one class": np.where(small_graph.labels == 0, 0, -1)}
    graph = small_graph.replace(labels=known[labels])
    detector = DeGEM(num_epochs=40).fit(graph)
    inside = detector.decision_function(graph)[graph.labelled if labels == "one class" else slice(None)]
    assert auroc_ood_positive(inside, detector.decision_function(corrupted(graph, 0))) > 0.9


def test_classes_are_learnt(small_graph: Graph) -> None:
    detector = DeGEM(num_epochs=40).fit(small_graph)
    assert (detector.predict_class(small_graph) == small_graph.labels).mean() > 0.9


def test_hops_lie_further_apart_the_farther_away_they_are() -> None:
    assert used_hops(10) == (0, 1, 2, 3, 5, 10)
    assert used_hops(1) == (0, 1)


def test_without_labelled_neighbours_homophily_is_guessed_from_features() -> None:
    rng = np.random.default_rng(0)
    size, classes = 1000, np.repeat([0, 1], 1000)
    features = (np.eye(2)[classes].repeat(4, axis=1) + 0.2 * rng.standard_normal((2 * size, 8))).astype(np.float32)
    ring = np.concatenate([np.stack([np.arange(size), np.roll(np.arange(size), -step)], axis=1) for step in (1, 2, 3)])
    apart = np.where(np.arange(2 * size) % 100 == 0, classes, -1)
    graph = Graph.from_arrays(features=features, edges=np.concatenate([ring, ring + size]), labels=apart)
    assert DeGEM(num_epochs=2).fit(graph).model_.homophily.item() > 0.3
    mixed = graph.replace(features=features[rng.permutation(2 * size)])
    assert DeGEM(num_epochs=2).fit(mixed).model_.homophily.item() < 0.1


def test_a_rare_class_stays_when_training_nodes_are_sampled(
    small_graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("degem.detectors.degem.encoder_training.MAX_POOL", 20)
    labels = np.where(np.arange(small_graph.num_nodes) == 60, 3, small_graph.labels)
    train = np.ones(small_graph.num_nodes, dtype=np.bool_)
    train[-10:] = False
    detector = DeGEM(num_epochs=2)
    detector.fit(small_graph.replace(labels=labels), train_mask=train, calibration_mask=~train)
    assert detector.score(small_graph).probabilities.shape[1] == 4


def test_fewer_directions_than_classes_ask_for_are_enough(small_graph: Graph) -> None:
    wide = np.random.default_rng(0).random((small_graph.num_nodes, 40)).astype(np.float32)
    detector = DeGEM(num_epochs=2, projection_dim=3).fit(small_graph.replace(features=wide))
    assert detector.decision_function(small_graph.replace(features=wide)).shape == (small_graph.num_nodes,)


def test_a_fit_leaves_the_number_of_threads_as_it_was(small_graph: Graph) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        DeGEM(num_epochs=2).fit(small_graph)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_nodes_scored_some_at_a_time_keep_their_order(small_graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    detector = DeGEM(num_epochs=2).fit(small_graph)
    at_once = detector.decision_function(small_graph)
    monkeypatch.setattr(hop_inputs, "SCORED_AT_ONCE", 7)
    np.testing.assert_allclose(detector.decision_function(small_graph), at_once, rtol=1e-4, atol=1e-4)


def test_the_class_of_a_node_without_neighbours_comes_from_its_own_features() -> None:
    rng = np.random.default_rng(0)
    classes = np.arange(600) % 3
    features = (np.eye(3)[classes].repeat(4, axis=1) + 0.7 * rng.standard_normal((600, 12))).astype(np.float32)
    edges = np.argwhere(np.triu((classes[:, None] == classes) & (rng.random((600, 600)) < 0.03), 1))
    graph = Graph.from_arrays(features=features, edges=edges[(edges >= 150).all(axis=1)], labels=classes)
    detector = DeGEM(num_epochs=20).fit(graph, train_mask=np.arange(600) >= 200)
    assert (detector.predict_class(graph)[:150] == classes[:150]).mean() > 0.86  # 0.82 from empty neighbourhoods


def test_a_node_without_neighbours_is_judged_by_its_own_features_and_by_how_rare_that_was(small_graph: Graph) -> None:
    alone = np.arange(120) % 10 == 0
    pairs = np.stack(small_graph.adjacency.nonzero(), axis=1)
    edges = pairs[~alone[pairs].any(axis=1)]
    graph = Graph.from_arrays(features=small_graph.features, edges=edges, labels=small_graph.labels)
    some, none = (DeGEM(num_epochs=5).fit(known).model_ for known in (graph, small_graph))
    assert some.without_neighbours < none.without_neighbours
    energies = torch.randn(6, len(some.energy_terms), generator=torch.Generator().manual_seed(0))
    around = energies.clone()
    around[:, some.needs_neighbours] += 100.0
    isolated = torch.arange(6) < 3

    def scored(terms: torch.Tensor) -> torch.Tensor:
        return combine(terms, isolated, some.needs_neighbours, some.combination)

    scores, moved = scored(energies), scored(around)
    np.testing.assert_array_equal(scores[:3], moved[:3])  # nothing about a neighbourhood counts
    assert (moved[3:] > scores[3:]).all()
    some.without_neighbours.fill_(50.0)
    assert (scored(energies)[:3] > scores[:3] + 30).all()
    np.testing.assert_array_equal(scored(energies)[3:], scores[3:])


def test_scales_are_those_of_held_out_nodes_in_the_graph_that_is_scored(small_graph: Graph) -> None:
    detector = DeGEM(num_epochs=5, seed=1).fit(small_graph, calibrate=False)
    hubs = np.repeat(np.arange(120), 4), 120 + np.arange(480) % 40  # forty new nodes, four edges to each old one
    edges = np.vstack([np.stack(small_graph.adjacency.nonzero(), axis=1), np.stack(hubs, axis=1)])
    features = np.vstack([small_graph.features, np.asarray(small_graph.features)[:40]])
    grown = Graph.from_arrays(features=features, edges=edges)
    alone = DeGEM(num_epochs=5, seed=1).fit(small_graph, calibrate=False)
    alone.held_out_ = dataclasses.replace(alone.held_out_, ids=alone.held_out_.ids + 1)  # it finds none of them
    held_out = detector.held_out_.rows_in(grown)
    assert held_out is not None
    here, there = (each.decision_function(grown)[held_out] for each in (detector, alone))
    before = detector.decision_function(small_graph)[held_out]
    assert abs(np.median(here) - np.median(before)) < 0.5 * abs(np.median(there) - np.median(before))


def test_a_graph_that_is_rewired_as_a_whole_has_not_grown(small_graph: Graph) -> None:
    detector = DeGEM(num_epochs=2).fit(small_graph)
    rng = np.random.default_rng(0)
    edges = np.argwhere(np.triu(rng.random((120, 120)) < 0.05, 1))
    rewired = Graph.from_arrays(features=np.asarray(small_graph.features), edges=edges)
    assert detector.held_out_.rows_in(rewired) is None
    assert detector.held_out_.rows_in(small_graph) is not None


def test_tails_are_taken_from_nodes_that_the_fit_kept_to_itself(small_graph: Graph) -> None:
    training = TrainingSet(small_graph, np.arange(5, 120), 3, None, 3)
    kept = hold_out(training)
    assert len(kept) == 30
    rest = training.without(kept)
    assert rest.graph.num_nodes == 90
    np.testing.assert_array_equal(rest.graph.node_ids[rest.nodes], np.setdiff1d(training.nodes, kept))


def test_one_node_of_each_class_is_never_held_out(small_graph: Graph) -> None:
    labels = np.where(np.arange(120) == 60, 3, small_graph.labels)
    for seed in range(20):
        training = TrainingSet(small_graph.replace(labels=labels), np.arange(120), 4, None, seed)
        assert 60 not in hold_out(training)


@pytest.mark.parametrize("labelled", [2, 3, 5])
def test_one_labelled_node_of_each_class_is_enough(labelled: int) -> None:
    labels = np.where(np.arange(60) < labelled, np.arange(60), -1)
    edges = [(i, (i + 1) % 60) for i in range(60)]
    graph = Graph.from_arrays(features=np.random.default_rng(0).random((60, 5)), edges=edges, labels=labels)
    detector = DeGEM(num_epochs=2).fit(graph)
    assert np.isfinite(detector.decision_function(graph)).all()


def test_scoring_from_two_threads_gives_the_same_scores(small_graph: Graph) -> None:
    detector = DeGEM(num_epochs=2).fit(small_graph)
    alone = detector.decision_function(small_graph)
    with ThreadPoolExecutor(2) as pool:
        for together in pool.map(detector.decision_function, [small_graph] * 6):
            np.testing.assert_array_equal(together, alone)
