"""What the base class does for every detector, seen on ones that learn nothing; the contract suite runs the rest."""

import dataclasses
import json
import warnings

import numpy as np
import pytest

from degem import DeGEM, Detector, Graph
from degem.detectors.base import HasLatents
from degem.detectors.trivial import Degree, Norm
from degem.errors import CalibrationWarning, DegemError, GraphError, ModelFileError, NotFittedError, ParameterError


def line_graph(count, **changes):
    """Node i has features of norm i + 1; the first ten nodes form a path."""
    features = np.arange(1.0, count + 1)[:, None]
    edges = [(i, i + 1) for i in range(min(count, 10) - 1)]
    return Graph.from_arrays(**{"features": features, "edges": edges, **changes})


def held_out(count, total):
    return np.arange(total) < count


def test_p_values_and_flags_follow_the_held_out_scores():
    graph = line_graph(40)
    detector = Norm().fit(graph, calibration_mask=held_out(19, 40))
    assert detector.p_values(graph)[:19] == pytest.approx(np.arange(2, 21) / 20)
    assert detector.predict(graph, alpha=0.1).tolist() == [1] + [0] * 39
    assert detector.predict(line_graph(3, features=[[0.5], [1.5], [9.0]]), alpha=0.05).tolist() == [1, 0, 0]


def test_too_few_held_out_nodes_are_said():
    graph = line_graph(40)
    detector = Norm().fit(graph, calibration_mask=held_out(18, 40))
    with pytest.warns(CalibrationWarning, match="18 calibration nodes cannot .* hold out at least 19"):
        assert not detector.predict(graph, alpha=0.05).any()
    with pytest.warns(CalibrationWarning, match="at least 99"):
        detector.predict(graph, fdr=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        detector.predict(graph, alpha=0.06)


def test_strata_count_their_own_nodes():
    graph = line_graph(80)  # the held-out half are 10 nodes on the path and 30 without neighbours
    detector = Norm().fit(graph, calibration_mask=held_out(40, 80))
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        detector.predict(graph, alpha=0.03)
    ring = Graph.from_arrays(features=np.arange(1.0, 81)[:, None], edges=[(i, (i + 1) % 25) for i in range(25)])
    detector = Norm().fit(ring, calibration_mask=held_out(60, 80))
    with pytest.warns(CalibrationWarning, match="25 calibration nodes of similar degree"):
        detector.predict(ring, alpha=0.03, by_degree=True)


def test_before_fitting():
    detector = Degree()
    for ask in (detector.decision_function, detector.predict, detector.p_values, detector.score_table, detector.save):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            ask(line_graph(3))


def test_the_graph_must_match_the_training_graph():
    detector = Norm().fit(line_graph(20, feature_names=["age"]))
    with pytest.raises(GraphError, match="2 feature columns, but the detector was fitted on 1"):
        detector.decision_function(Graph.from_arrays(features=np.ones((3, 2)), edges=[]))
    with pytest.raises(GraphError, match="feature column 0 is 'height', but the detector was fitted with 'age'"):
        detector.decision_function(line_graph(3, feature_names=["height"]))
    detector.decision_function(line_graph(3))  # a graph without names is taken at its word


def test_parameters_are_stored_untouched_and_checked_in_fit():
    detector = Norm(seed=-1)
    assert detector.get_params()["seed"] == -1
    with pytest.raises(ParameterError, match="seed = -1"):
        detector.fit(line_graph(3))
    with pytest.raises(ParameterError, match="did you mean 'seed'"):
        detector.set_params(sed=1)
    assert detector.set_params(seed=3).seed == 3


def test_what_a_detector_does_not_have_is_an_error_by_name():
    detector = Norm().fit(line_graph(20))
    assert not isinstance(detector, HasLatents)
    with pytest.raises(DegemError, match="fitted without labels"):
        detector.predict_class(line_graph(20))


def test_saved_and_loaded(tmp_path):
    graph = line_graph(30, labels=[0, 1] * 15, class_names=["red", "blue"], feature_names=["age"])
    detector = Norm(seed=4).fit(graph)
    detector.save(tmp_path / "model")
    for kind in (Detector, Norm):
        loaded = kind.load(tmp_path / "model")
        assert type(loaded) is Norm
        assert loaded.get_params() == detector.get_params()
        assert (loaded.class_names_, loaded.feature_names_) == (("red", "blue"), ("age",))
        assert np.array_equal(loaded.p_values(graph), detector.p_values(graph))


def test_another_methods_model_is_refused(tmp_path):
    Norm().fit(line_graph(20)).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="holds a 'norm' model, which Degree cannot load"):
        Degree.load(tmp_path / "model")


def test_a_model_folder_is_plain_to_read(tmp_path):
    Norm(seed=4).fit(line_graph(20)).save(tmp_path / "model")
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    assert about["parameters"]["seed"] == 4
    assert about["num_training_nodes"] == 18


def test_an_interrupted_second_fit_leaves_no_mixture_of_two(monkeypatch):
    detector = Norm().fit(line_graph(40))

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Norm, "_fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        detector.fit(line_graph(20))
    with pytest.raises(NotFittedError):
        detector.p_values(line_graph(40))


def test_a_detector_is_small() -> None:
    own = [name for name in vars(Detector) if not name.startswith("_")]
    assert len(own) <= 12, own
    assert len(dataclasses.fields(DeGEM)) <= 14
