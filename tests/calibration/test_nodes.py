"""Calibration nodes in a graph that has grown: found again, scored in the same pass, or joined to it."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from degem import Graph
from degem.calibration import judge
from degem.calibration.known import KnownNodes
from degem.detectors.trivial import Degree, Norm
from degem.errors import CalibrationWarning, DegemError, GraphError, NotFittedError, ParameterError


def ring(count: int, **changes) -> Graph:
    """A ring; node i has the feature i + 1."""
    edges = [(i, (i + 1) % count) for i in range(count)]
    return Graph.from_arrays(**{"features": np.arange(1.0, count + 1)[:, None], "edges": edges, **changes})


def grown(graph: Graph, extra: list[tuple[int, int]], new: int) -> Graph:
    """The graph with ``new`` more nodes and some more edges."""
    count = graph.num_nodes + new
    old = np.stack(graph.adjacency.nonzero(), axis=1)
    names = [*graph.node_ids.tolist(), *range(graph.num_nodes, count)]
    return Graph.from_arrays(
        features=np.vstack([graph.features, np.full((new, 1), 5.0)]),
        edges=np.vstack([old, extra]),
        node_ids=names,
        num_nodes=count,
    )


def test_calibration_nodes_and_their_edges_are_not_in_the_training_graph() -> None:
    graph = ring(40)
    held_out = np.arange(40) % 8 == 0
    seen = []

    class Watched(Degree):
        def _fit(self, training, on_progress):
            seen.append(training.graph)
            return {}

    Watched().fit(graph, calibration_mask=held_out)
    assert seen[0].num_nodes == 35
    assert seen[0].num_edges == 40 - 2 * 5


def test_growth_moves_the_scores_that_p_values_compare_with() -> None:
    graph = ring(40)
    detector = Degree().fit(graph, calibration_mask=np.arange(40) < 20)
    more = grown(graph, [(i, 40) for i in range(20)], 1)  # every calibration node gains a neighbour
    judged = judge(detector, more)
    assert judged.calibration_scores.tolist() == [-3.0] * 20
    assert detector.p_values(more)[30] == pytest.approx(1 / 21)  # two neighbours are few by now


def test_nodes_of_a_file_are_found_by_name_whatever_their_features_are_now() -> None:
    names = [f"paper {i}" for i in range(40)]
    graph = ring(40, node_ids=names)
    detector = Norm().fit(graph, calibration_mask=np.arange(40) < 20)
    shuffled = graph.replace(features=np.asarray(graph.features) * 3).subgraph(np.arange(40)[::-1])
    np.testing.assert_array_equal(judge(detector, shuffled).calibration_scores, -3 * np.arange(1.0, 21))


def test_places_name_nothing_in_another_graph() -> None:
    detector = Norm().fit(ring(40), calibration_mask=np.arange(40) < 20)
    other = ring(60).replace(features=np.random.default_rng(0).random((60, 1)).astype(np.float32))
    with pytest.warns(CalibrationWarning, match="lacks the calibration nodes"):
        judged = judge(detector, other)
    np.testing.assert_array_equal(judged.calibration_scores, detector.calibration_.scores)


@pytest.mark.parametrize("sparse", [False, True])
def test_kept_nodes_join_a_graph_that_lacks_them(tmp_path, sparse: bool) -> None:
    graph = ring(40, node_ids=[f"n{i}" for i in range(40)])
    if sparse:
        graph = graph.replace(features=sp.csr_array(graph.features))
    detector = Degree().fit(graph, calibration_mask=np.arange(40) % 4 == 0, keep_calibration_nodes=True)
    detector.save(tmp_path / "model")
    rest = graph.subgraph(np.arange(40) % 4 != 0)
    for model in (detector, Degree.load(tmp_path / "model")):
        with warnings.catch_warnings():
            warnings.simplefilter("error", CalibrationWarning)
            judged = judge(model, rest)
        assert judged.calibration_scores.tolist() == [-2.0] * 10
        assert len(judged.result.scores) == 30
        assert judged.result.scores.tolist() == (-graph.degrees[np.arange(40) % 4 != 0]).tolist()


def test_half_of_the_nodes_are_enough() -> None:
    graph = ring(40, node_ids=[f"n{i}" for i in range(40)])
    detector = Norm().fit(graph, calibration_mask=np.arange(40) < 20)
    assert len(judge(detector, graph.subgraph(np.arange(10, 40))).calibration_scores) == 10
    with pytest.warns(CalibrationWarning, match="lacks"):
        assert len(judge(detector, graph.subgraph(np.arange(11, 40))).calibration_scores) == 20


def test_only_some_nodes_are_judged_and_the_discovery_rate_is_over_them() -> None:
    graph = ring(100, node_ids=[f"n{i}" for i in range(100)])
    detector = Norm().fit(graph, calibration_mask=np.arange(100) >= 50)
    everyone = detector.p_values(graph)
    np.testing.assert_array_equal(detector.p_values(graph, only=["n7", "n3"]), everyone[[7, 3]])
    assert detector.predict(graph, fdr=0.2, only=["n0"]).tolist() == [1]
    assert detector.score_table(graph, only=["n9"])["node_id"].tolist() == ["n9"]
    with pytest.raises(GraphError, match="no node 'n100'"):
        detector.p_values(graph, only=["n100"])


def test_weights_by_degree_count_hubs_less() -> None:
    star = Graph.from_arrays(features=np.arange(1.0, 22)[:, None], edges=[(0, i) for i in range(1, 21)])
    detector = Norm().fit(star, calibration_mask=np.arange(21) < 11)
    plain, weighted = detector.p_values(star), detector.p_values(star, exchangeable="edges")
    assert plain[1] == pytest.approx((1 + 2) / 12)  # the hub and itself score as high
    assert weighted[1] == pytest.approx((1 + 1 / 20 + 1) / (1 + 1 / 20 + 10))


def test_calibrating_anew_needs_no_fit() -> None:
    graph = ring(40)
    detector = Norm().fit(graph, calibrate=False)
    with pytest.raises(NotFittedError, match="calibrate"):
        detector.p_values(graph)
    later = ring(40, node_ids=[f"new {i}" for i in range(40)])
    detector.calibrate(later, later.node_ids[:19])
    assert detector.predict(later, alpha=0.1).tolist() == [1, *[0] * 39]
    assert len(detector.calibration_) == 19


def test_training_nodes_are_refused_and_former_calibration_nodes_are_not() -> None:
    graph = ring(40, node_ids=[f"n{i}" for i in range(40)])
    held_out = np.arange(40) < 20
    for calibrate in (True, False):
        detector = Norm().fit(graph, train_mask=~held_out, calibration_mask=held_out, calibrate=calibrate)
        with pytest.raises(GraphError, match="were in the training graph"):
            detector.calibrate(graph, ["n30"])
    detector = Norm().fit(graph, train_mask=~held_out, calibration_mask=held_out)
    detector.calibrate(graph, ["n3", "n3", "n4"])
    assert len(detector.calibration_) == 2
    assert len(detector.calibrate(graph, graph.node_ids[held_out]).calibration_) == 20
    with pytest.raises(GraphError, match="no node to calibrate on"):
        detector.calibrate(graph, [])


def test_places_of_another_graph_are_other_nodes() -> None:
    detector = Norm().fit(ring(40), calibration_mask=np.arange(40) < 20)
    other = ring(60).replace(features=np.random.default_rng(0).random((60, 1)).astype(np.float32))
    assert len(detector.calibrate(other, np.arange(25, 50)).calibration_) == 25


def test_kept_nodes_keep_the_edges_between_them_and_join_once() -> None:
    graph = ring(40, node_ids=[f"n{i}" for i in range(40)])
    held_out = np.arange(40) % 8 < 3  # three in a row
    detector = Degree().fit(graph, calibration_mask=held_out, keep_calibration_nodes=True)
    judged = judge(detector, graph.subgraph(~held_out))
    assert judged.calibration_scores.tolist() == [-2.0] * 15
    some = ~held_out | (np.arange(40) < 3)  # three of fifteen are there
    assert judge(detector, graph.subgraph(some)).calibration_scores.tolist() == [-2.0] * 15


def test_a_hub_is_looked_up_without_its_whole_row_for_each_edge() -> None:
    star = Graph.from_arrays(features=np.ones((20_001, 1)), edges=[(0, i) for i in range(1, 20_001)])
    known = KnownNodes.of(star, np.array([0]))
    tracemalloc.start()
    assert known.rows_in(star) is not None
    assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    tracemalloc.stop()


def test_ids_that_are_not_unique_name_nobody() -> None:
    graph = ring(40, node_ids=[*["a"] * 9, *(f"n{i}" for i in range(9, 40))])
    assert KnownNodes.of(graph, np.array([30])).rows_in(graph).tolist() == [30]
    assert KnownNodes.of(graph, np.array([3])).rows_in(graph) is None


def test_a_word_that_is_no_choice_is_refused() -> None:
    graph = ring(40)
    detector = Norm().fit(graph)
    with pytest.raises(ParameterError, match="exchangeable = 'edge' is not allowed: choose nodes or edges"):
        detector.predict(graph, exchangeable="edge")
    with pytest.raises(ParameterError, match="by_degree = 'no' is not allowed"):
        detector.predict(graph, by_degree="no")
    with pytest.raises(DegemError, match="a level must lie strictly"):
        detector.predict(graph, alpha="0.05")


def test_ids_that_are_not_unique_cannot_be_asked_for() -> None:
    graph = ring(40, node_ids=["a", "a", *(f"n{i}" for i in range(2, 40))])
    with pytest.raises(GraphError, match="two nodes of the graph have the same id"):
        Norm().fit(graph).p_values(graph, only=["a"])


def test_weights_of_edges_are_not_kept_without_a_word() -> None:
    edges = np.array([(row, (row + step) % 40) for row in range(40) for step in (1, 3)])
    graph = Graph.from_arrays(features=np.eye(40), edges=edges, edge_weights=np.arange(1, 81))
    detector = Degree().fit(graph, calibration_mask=np.arange(40) % 4 == 0)
    with pytest.raises(DegemError, match="no weights of edges"):
        detector.calibrate(graph, graph.node_ids[:40:4], keep=True)
