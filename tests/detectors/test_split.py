import numpy as np
import pytest

from degem import Graph, NodeSet
from degem.detectors.split import resolve_training_set
from degem.errors import GraphError


def graph_with(labels, **masks):
    count = len(labels)
    return Graph.from_arrays(features=np.ones((count, 1)), edges=[], labels=labels, masks=masks)


def resolve(graph, train=None, held_out=None, seed=0):
    return resolve_training_set(graph, train, held_out, None, seed)


def test_a_tenth_of_the_labelled_nodes_is_held_out_by_seed():
    graph = graph_with([0, 1] * 50 + [-1] * 20)
    training, held_out, classes = resolve(graph)
    assert len(held_out) == 10
    assert len(training.nodes) == 90
    assert sorted([*training.graph.node_ids[training.nodes], *held_out]) == list(range(100))
    assert not set(held_out) & set(training.graph.node_ids)
    assert classes == (0, 1)
    assert np.array_equal(resolve(graph)[1], held_out)
    assert not np.array_equal(resolve(graph, seed=1)[1], held_out)


def test_without_labels_every_node_is_in_distribution():
    training, held_out, classes = resolve(graph_with([-1] * 20))
    assert len(training.nodes) + len(held_out) == 20
    assert classes == ()
    assert training.num_classes == 0
    assert training.labelled_nodes.size == 0


def test_the_training_graph_tells_nothing_of_the_other_nodes():
    graph = graph_with([5, 5, 2, 2], train=[True, False, True, False], val=[False, True, False, False]).replace(
        class_names=tuple("abcdef"), columns={"truth": np.arange(4)}
    )
    training, held_out, classes = resolve(graph)
    assert training.graph.node_ids.tolist() == [0, 2, 3]
    assert training.graph.labels.tolist() == [1, 0, -1]
    assert classes == (2, 5)
    assert held_out.tolist() == [1]
    assert training.graph.num_classes == 2
    assert not training.graph.masks
    assert not training.graph.columns
    assert graph.labels.tolist() == [5, 5, 2, 2]


def test_given_masks_come_before_the_graphs_own():
    graph = graph_with([0] * 4, train=[True] * 4, val=[True] * 4)
    training, held_out, _ = resolve(graph, np.array([1, 1, 0, 0], bool), np.array([0, 0, 1, 0], bool))
    assert training.nodes.tolist() == [0, 1]
    assert held_out.tolist() == [2]


def test_a_training_mask_alone_lends_its_calibration_nodes():
    training, held_out, _ = resolve(graph_with([0] * 20 + [-1] * 5, train=[True] * 20 + [False] * 5))
    assert (len(training.nodes), len(held_out)) == (18, 2)
    assert max(*training.nodes, *held_out) < 20


def test_unlabelled_training_nodes_are_learnt_from_too():
    training, _, _ = resolve(graph_with([0, 1, -1, 0]), np.array([1, 1, 1, 0], bool), np.array([0, 0, 0, 1], bool))
    assert training.nodes.tolist() == [0, 1, 2]
    assert training.labelled_nodes.tolist() == [0, 1]


def test_one_node_is_trained_on_and_calibrates_nothing():
    training, held_out, _ = resolve(graph_with([0]))
    assert training.nodes.tolist() == [0]
    assert held_out.size == 0


def test_exposure_is_handed_on():
    graph = graph_with([0, 0, 0])
    elsewhere = NodeSet(graph_with([-1]), np.array([0]))
    assert resolve_training_set(graph, None, None, elsewhere, 0)[0].exposure is elsewhere


def test_exposure_nodes_of_the_training_graph_keep_their_ids():
    graph = graph_with([0, 0, 0, 0])
    held_out = np.array([True, False, False, False])
    training, _, _ = resolve_training_set(graph, None, held_out, NodeSet(graph, np.array([0, 3])), 0)
    assert training.exposure.graph is training.graph
    assert training.graph.node_ids[training.exposure.nodes].tolist() == [3]


def test_without_calibration_every_node_stays_and_validation_nodes_tell_no_label():
    graph = graph_with([0, 1, 0], train=[True, True, False], val=[False, False, True])
    training, _, _ = resolve_training_set(graph, None, None, None, 0, calibrate=False)
    assert training.graph.labels.tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("train", "held_out", "reason"),
    [
        ([True, True], None, "train mask must be one boolean for each of the 3 nodes"),
        ([0, 1, 1], None, "got int64"),
        (None, [True], "val mask"),
        ([True, True, False], [False, True, True], "1 nodes are both"),
        ([False] * 3, [False] * 3, "no node is left to train on"),
        (None, [True] * 3, "no node is left to train on"),
    ],
)
def test_masks_that_cannot_be(train, held_out, reason):
    with pytest.raises(GraphError, match=reason):
        resolve(graph_with([0, 0, 1]), train, held_out)
