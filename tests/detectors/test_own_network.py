"""Detectors on the outputs of one's own network: the scores are those of a detector that has trained it itself."""

from pathlib import Path

import numpy as np
import pytest

from degem import Detector, Graph, wrap
from degem.calibration import judge
from degem.detectors.backbone import BackboneCache, BackboneDetector
from degem.errors import CalibrationWarning, DegemError, ParameterError

READERS = ["msp", "energy", "gnnsafe", "grasp", "knn", "mahalanobis", "latent-ebm"]


@pytest.fixture(scope="module")
def network(small_graph: Graph) -> BackboneDetector:
    """A network that was trained elsewhere."""
    return Detector.registry["msp"](num_epochs=30).fit(small_graph, calibrate=False)


def outputs(network: BackboneDetector, graph: Graph, **which: bool) -> Graph:
    layers = network._layers(graph)
    given = {"logits": layers.logits, "embeddings": layers.hidden[-1]}
    return wrap(graph, **{name: value for name, value in given.items() if which.get(name, True)})


@pytest.mark.parametrize("method", READERS)
def test_scores_are_those_of_a_detector_that_trained_the_network(
    method: str, network: BackboneDetector, small_graph: Graph, tmp_path: Path
) -> None:
    cache = BackboneCache()
    own = Detector.registry[method](num_epochs=30).share(cache).fit(small_graph, calibrate=False)
    seen = outputs(network, small_graph)
    given = Detector.registry[method]().fit(seen, calibrate=False)
    np.testing.assert_allclose(given.decision_function(seen), own.decision_function(small_graph), rtol=1e-5)
    np.testing.assert_array_equal(given.predict_class(seen), own.predict_class(small_graph))
    given.save(tmp_path / "model")
    loaded = Detector.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(seen), given.decision_function(seen))


def test_every_column_of_logits_is_a_class(small_graph: Graph) -> None:
    logits = np.eye(5)[np.arange(small_graph.num_nodes) % 5]
    detector = Detector.registry["msp"]().fit(wrap(small_graph, logits=logits, train=small_graph.labels == 1))
    assert detector.predict_class(wrap(small_graph, logits=logits)).tolist()[:6] == [0, 1, 2, 3, 4, 0]


def test_embeddings_alone_serve_methods_that_read_no_logits(network: BackboneDetector, small_graph: Graph) -> None:
    seen = outputs(network, small_graph, logits=False)
    for method in ("knn", "mahalanobis"):
        detector = Detector.registry[method]().fit(seen, calibrate=False)
        assert detector.score(seen).probabilities is None
    with pytest.raises(DegemError, match="msp reads logits"):
        Detector.registry["msp"]().fit(seen)


def test_calibration_nodes_are_scored_again_though_all_outputs_have_moved(small_graph: Graph) -> None:
    rng = np.random.default_rng(0)
    seen, later = (wrap(small_graph, logits=rng.normal(size=(small_graph.num_nodes, 3))) for _ in range(2))
    train = np.arange(small_graph.num_nodes) % 2 == 0
    detector = Detector.registry["energy"]().fit(seen, train_mask=train, calibration_mask=~train)
    judged = judge(detector, later)
    np.testing.assert_array_equal(judged.calibration_scores, judged.result.scores[~train])


def test_a_flow_takes_embeddings_of_any_width(small_graph: Graph) -> None:
    rng = np.random.default_rng(0)
    seen = wrap(small_graph, embeddings=rng.normal(size=(small_graph.num_nodes, 5)))
    flow = Detector.registry["residualflow"](num_flow_steps=2).fit(seen, calibrate=False)
    assert np.isfinite(flow.decision_function(seen)).all()


def test_it_says_so_where_the_network_may_have_seen_the_calibration_nodes(small_graph: Graph) -> None:
    with pytest.warns(CalibrationWarning, match="name the nodes that it was trained on"):
        Detector.registry["msp"]().fit(wrap(small_graph, logits=np.zeros((small_graph.num_nodes, 3))))


def test_a_step_of_the_input_needs_the_network(network: BackboneDetector, small_graph: Graph) -> None:
    seen = outputs(network, small_graph)
    with pytest.raises(ParameterError, match="perturbation=0"):
        Detector.registry["odin"]().fit(seen)
    assert len(Detector.registry["odin"](perturbation=0).fit(seen).decision_function(seen)) == seen.num_nodes
