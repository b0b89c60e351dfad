from pathlib import Path

import numpy as np
import pytest

from degem import Graph
from degem.data.splits import random_split
from degem.errors import DegemError
from degem.shifts import Scenario, Settings, load_scenario
from degem.shifts.base import label_parts
from degem.shifts.scenarios import kind_of, label_leave_out, manipulation, scenario_name, shifts_of


def label_scenario(graph: Graph, settings: Settings) -> Scenario:
    inside, _, _ = label_parts(graph.labels, 1)
    return label_leave_out(graph, random_split(inside, 0), 1, settings)


def test_label_shift_hides_every_label_but_those_of_train_and_val(small_graph: Graph) -> None:
    scenario = label_scenario(small_graph, Settings())
    graph = scenario.train_graph
    seen = graph.masks["train"] | graph.masks["val"]
    np.testing.assert_array_equal(graph.labelled, seen)
    assert set(graph.labels[seen]) == {2}
    truth = small_graph.labels
    assert set(truth[scenario.ood["label"].nodes]) == {0}
    assert set(truth[scenario.exposure["label"].nodes]) == {1}
    assert set(scenario.test_labels) == {2}
    assert "test" not in graph.masks
    assert scenario.id_test.graph is graph
    assert scenario.ood["label"].graph is graph


def test_manipulated_graphs_know_nothing_of_their_nodes(small_graph: Graph) -> None:
    scenario = manipulation(small_graph, random_split(small_graph.labelled, 0), Settings())
    for sets in (scenario.ood, scenario.exposure):
        for nodes in sets.values():
            assert len(nodes.nodes) == small_graph.num_nodes
            assert not nodes.graph.labelled.any()
            assert not nodes.graph.masks
    drawn, exposed = scenario.ood["structure"].graph.adjacency, scenario.exposure["structure"].graph.adjacency
    assert (drawn != exposed).nnz > 0


def test_seeds_change_everything_drawn_and_the_same_seed_nothing(small_graph: Graph) -> None:
    def made(seed: int) -> Scenario:
        return manipulation(small_graph, random_split(small_graph.labelled, seed), Settings(seed=seed))

    first, again, other = made(0), made(0), made(1)
    for shift in ("structure", "feature"):
        a, b, c = (scenario.ood[shift].graph for scenario in (first, again, other))
        assert (a.adjacency != b.adjacency).nnz == 0
        np.testing.assert_array_equal(a.features, b.features)
        assert (a.adjacency != c.adjacency).nnz > 0 or not np.array_equal(a.features, c.features)


def test_label_rate_takes_labels_and_leaves_the_nodes_known_as_in_distribution(small_graph: Graph) -> None:
    split = random_split(small_graph.labelled, 0, train=0.5)
    full = manipulation(small_graph, split, Settings())
    tenth = manipulation(small_graph, split, Settings(label_rate=0.1))
    for part in ("train", "val"):
        np.testing.assert_array_equal(tenth.train_graph.masks[part], full.train_graph.masks[part])
    np.testing.assert_array_equal(tenth.id_test.nodes, full.id_test.nodes)
    train = full.train_graph.masks["train"]
    kept = tenth.train_graph.labelled & train
    assert int(kept.sum()) == 6
    np.testing.assert_array_equal(tenth.train_graph.labels[kept], full.train_graph.labels[kept])
    np.testing.assert_array_equal(tenth.train_graph.labels[~train], full.train_graph.labels[~train])


def test_names_of_shifts() -> None:
    assert shifts_of("twitch") == ("ES", "FR", "RU")
    assert shifts_of("arxiv-structural") == ("2018", "2019", "2020")
    assert shifts_of("synthetic-cora-0.2") == ("feature",)
    with pytest.raises(DegemError, match="structure"):
        kind_of("texture")


def test_a_dataset_has_one_name_however_it_is_spelt() -> None:
    assert shifts_of("Twitch") == ("ES", "FR", "RU")
    assert shifts_of("ogbn-arxiv") == ("2018", "2019", "2020")
    names = ("Cora", "PHOTO", "Twitch", "twitch-DE", "OGBN-arxiv", "Synthetic-Cora-.2")
    assert [scenario_name(name) for name in names] == [
        *("cora", "amazon-photo", "twitch", "twitch-de", "arxiv", "synthetic-cora-0.2")
    ]
    for wrong in ("corra", "synthetic-cora-x", "synthetic-cora-2"):
        with pytest.raises(DegemError, match=wrong):
            scenario_name(wrong)


@pytest.mark.parametrize(
    ("dataset", "kind", "known"),
    [
        ("Cora", "domain", "structure (kind 'manipulation'), feature (kind 'manipulation'), label (kind 'label')"),
        ("cora", "structure", "structure (kind 'manipulation'), feature"),
        ("twitch", "manipulation", "ES (kind 'domain'), FR"),
        ("twitch-es", "label", "structure (kind 'manipulation'), feature (kind 'manipulation')"),
        ("arxiv", "label", "2018 (kind 'time'), 2019"),
        ("synthetic-cora-0.5", "label", "feature (kind 'manipulation')"),
    ],
)
def test_a_kind_of_shift_that_a_dataset_does_not_have_is_refused(dataset: str, kind: str, known: str) -> None:
    with pytest.raises(DegemError) as caught:
        load_scenario(dataset, kind, Settings())
    assert f"{scenario_name(dataset)} has no shift of the kind {kind!r}: it has {known}" in str(caught.value)


def test_another_spelling_is_the_same_scenario(data_dir: Path) -> None:
    scenario = load_scenario("Cora", "manipulation", Settings(), data_dir)
    assert scenario.dataset == "cora"
    assert int(scenario.train_graph.masks["train"].sum()) == 140


@pytest.mark.parametrize(("dataset", "kind"), [("cornell", "label"), ("cora", "manipulation"), ("twitch", "domain")])
def test_the_same_seed_is_the_same_scenario(dataset: str, kind: str, data_dir: Path) -> None:
    first, second = (load_scenario(dataset, kind, Settings(seed=1), data_dir) for _ in range(2))
    np.testing.assert_array_equal(first.test_labels, second.test_labels)
    np.testing.assert_array_equal(first.train_graph.masks["train"], second.train_graph.masks["train"])
    assert first.ood.keys() == second.ood.keys()
    for shift, nodes in first.ood.items():
        np.testing.assert_array_equal(nodes.nodes, second.ood[shift].nodes)
        assert (nodes.graph.adjacency != second.ood[shift].graph.adjacency).nnz == 0
    assert second.id_test.graph is second.train_graph
    if kind == "domain":
        assert len({id(nodes) for nodes in second.exposure.values()}) == 1


def test_scenario_features_have_unit_rows(data_dir: Path) -> None:
    features = load_scenario("cornell", "manipulation", Settings(), data_dir).train_graph.features
    sums = np.asarray(features.sum(axis=1)).ravel()
    np.testing.assert_allclose(sums[sums > 0], 1, rtol=1e-5)


def test_cora_label_uses_the_public_split_of_id_classes(data_dir: Path) -> None:
    scenario = load_scenario("cora", "label", Settings(), data_dir)
    assert int(scenario.train_graph.masks["train"].sum()) == 60
    assert set(scenario.test_labels) == {4, 5, 6}


def test_one_way_links_make_the_random_graph_sparser(data_dir: Path) -> None:
    """Cornell is stored with 298 pairs; both ways of its 277 edges would be 554, and the mean degree 2.1."""
    scenario = load_scenario("cornell", "manipulation", Settings(), data_dir)
    drawn = [sets["structure"].graph.degrees.mean() for sets in (scenario.ood, scenario.exposure)]
    assert np.mean(drawn) == pytest.approx(0.7 * 298 / 183, abs=0.2)
