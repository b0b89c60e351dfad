"""The chance that a prediction is wrong: what it is learnt on, which way it goes, and that it lasts."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, logit

from degem import Graph
from degem.calibration.trust import doubts, error_chances, fit_errors
from degem.detectors.logits import MSP
from degem.detectors.trivial import Degree
from degem.errors import CalibrationWarning, DegemError, GraphError


@pytest.fixture
def drawn() -> tuple[np.ndarray, np.ndarray]:
    """Doubts, and errors that come of the first two of them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 4))
    return x, rng.random(4000) < expit(-1 + 2 * x[:, 0] + x[:, 1])


def test_the_chances_are_those_that_errors_were_drawn_with(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    x, wrong = drawn
    weights = fit_errors(x, wrong)
    np.testing.assert_allclose(weights, [-1, 2, 1, 0, 0], atol=0.2)
    chances = error_chances(weights, x)
    for low, high in ((0, 0.2), (0.2, 0.6), (0.6, 1)):
        some = (chances > low) & (chances <= high)
        assert wrong[some].mean() == pytest.approx(chances[some].mean(), abs=0.05)


def test_a_doubt_never_speaks_for_a_prediction(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    x, wrong = drawn
    assert (fit_errors(-x, wrong)[1:] >= 0).all()


def test_few_nodes_leave_the_classifier_its_word() -> None:
    rng = np.random.default_rng(0)
    word = logit(rng.uniform(0.05, 0.4, size=3))
    x = np.column_stack([word, rng.random((3, 3))])
    chances = error_chances(fit_errors(x, np.zeros(3, dtype=bool)), x)
    assert (chances > 0.005).all()
    assert (chances < expit(word)).all()


def test_isolated_nodes_stand_in_for_their_neighbours() -> None:
    found = doubts(np.array([[0.8, 0.2]]), sp.csr_array((1, 1)), np.array([0.5]))
    np.testing.assert_allclose(found, [[logit(0.2), 0.2, 0.2, np.log(2)]])


def test_errors_of_new_nodes_are_found_and_the_model_lasts(small_graph: Graph, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noisy = rng.random(small_graph.num_nodes) < 0.3  # their labels cannot be told
    labels = np.where(noisy, rng.integers(3, size=small_graph.num_nodes), small_graph.labels)
    train = np.arange(small_graph.num_nodes) % 2 == 0
    detector = MSP(num_epochs=60).fit(
        small_graph.replace(labels=labels), train_mask=train, calibration_mask=~train, calibrate=True
    )
    table = detector.trust(small_graph)
    wrong = table["predicted_class"].to_numpy() != labels
    assert table["error_chance"][~train].mean() == pytest.approx(wrong[~train].mean(), abs=0.05)
    detector.save(tmp_path / "model")
    again = MSP.load(tmp_path / "model").trust(small_graph)
    np.testing.assert_array_equal(again["error_chance"], table["error_chance"])
    some = detector.trust(small_graph, only=[7, 3])
    np.testing.assert_array_equal(some["error_chance"], table["error_chance"][[7, 3]])


def test_a_graph_without_the_calibration_nodes_is_told_by_what_was_learnt_at_the_fit(small_graph: Graph) -> None:
    graph = small_graph.replace(node_ids=np.array([f"n{i}" for i in range(small_graph.num_nodes)], dtype=object))
    detector = MSP(num_epochs=20).fit(graph)
    elsewhere = graph.replace(node_ids=np.array([f"other {i}" for i in range(graph.num_nodes)], dtype=object))
    with pytest.warns(CalibrationWarning, match="lacks the calibration nodes"):
        there = detector.trust(elsewhere)
    np.testing.assert_allclose(there["error_chance"], detector.trust(graph)["error_chance"], rtol=1e-6)
    with pytest.warns(CalibrationWarning), pytest.raises(GraphError, match="errors of your own classifier"):
        detector.trust(elsewhere, logits=np.zeros((graph.num_nodes, 3)))


def test_errors_of_another_classifier(small_graph: Graph) -> None:
    detector = Degree().fit(small_graph)
    right = 5.0 * np.eye(3)[small_graph.labels]
    wrong = np.roll(right, 1, axis=1)
    sure = detector.trust(small_graph, logits=right)
    assert (sure["predicted_class"] == small_graph.labels).all()
    assert sure["error_chance"].max() < detector.trust(small_graph, logits=wrong)["error_chance"].min()
    with pytest.raises(GraphError, match="3 rows of logits"):
        detector.trust(small_graph, logits=right[:3])


def test_without_labels_nobody_is_wrong(small_graph: Graph) -> None:
    detector = Degree().fit(small_graph.replace(labels=np.full(small_graph.num_nodes, -1)))
    with pytest.raises(DegemError, match="no classes to be wrong about"):
        detector.trust(small_graph)
    with pytest.raises(DegemError, match="no calibration node has a label"):
        detector.trust(small_graph, logits=np.zeros((small_graph.num_nodes, 2)))


def test_calibrating_anew_knows_classes_by_name(small_graph: Graph) -> None:
    names = ("blue", "green", "red")
    graph = small_graph.replace(class_names=names)
    train = np.arange(graph.num_nodes) % 3 > 0
    detector = MSP(num_epochs=60).fit(graph, train_mask=train, calibration_mask=~train)
    before = detector.calibration_.labels
    turned = graph.replace(class_names=names[::-1], labels=2 - graph.labels)
    detector.calibrate(turned, turned.node_ids[~train])
    np.testing.assert_array_equal(detector.calibration_.labels, before)
