from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

from degem import DeGEM
from degem.adapters import PyODDetector, SklearnDetector
from degem.detectors.features import FeatureKNN


@pytest.fixture
def grown(small_graph):
    """The graph with a few nodes far out."""
    features = np.array(small_graph.features)
    features[:6] *= 30
    return small_graph.replace(features=features)


def test_scikit_learn_names(small_graph, grown):
    adapter = SklearnDetector(FeatureKNN(seed=1), alpha=0.1)
    found = adapter.fit_predict(small_graph)
    own = FeatureKNN(seed=1).fit(small_graph)
    np.testing.assert_array_equal(found, np.where(own.predict(small_graph, alpha=0.1), -1, 1))
    assert 0 < (found == -1).sum() < len(found) / 2
    np.testing.assert_array_equal(adapter.score_samples(grown), -own.decision_function(grown))
    np.testing.assert_array_equal(
        adapter.decision_function(small_graph), adapter.score_samples(small_graph) - adapter.offset_
    )
    np.testing.assert_array_equal(np.where(adapter.decision_function(small_graph) < 0, -1, 1), found)
    assert (adapter.predict(grown)[:6] == -1).all()


def test_scikit_learn_checks_that_need_no_table():
    for check in (
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_mixin_order,
    ):
        for adapter in (SklearnDetector(), PyODDetector()):
            check(type(adapter).__name__, adapter)
    assert is_outlier_detector(SklearnDetector())


def test_the_detector_is_a_template(small_graph):
    detector = DeGEM(num_epochs=1, latent_dim=8)
    adapter = clone(SklearnDetector(detector)).set_params(detector__latent_dim=4, alpha=0.2).fit(small_graph)
    assert (detector.latent_dim, adapter.detector_.latent_dim, adapter.alpha) == (8, 4, 0.2)
    assert not hasattr(detector, "history_")
    assert not hasattr(adapter.detector, "history_")


@pytest.mark.parametrize("adapter", [SklearnDetector(FeatureKNN()), PyODDetector(FeatureKNN())])
def test_before_the_fit(adapter, small_graph):
    for verb in (adapter.predict, adapter.decision_function):
        with pytest.raises(NotFittedError):
            verb(small_graph)


def test_pyod_names(small_graph, grown):
    adapter = PyODDetector(FeatureKNN(), contamination=0.25).fit(small_graph)
    own = FeatureKNN().fit(small_graph)
    np.testing.assert_array_equal(adapter.decision_scores_, own.decision_function(small_graph))
    assert adapter.labels_.mean() == 0.25
    assert adapter.threshold_ == np.quantile(adapter.decision_scores_, 0.75)
    np.testing.assert_array_equal(adapter.predict(small_graph), adapter.labels_)
    assert adapter.predict(grown)[:6].all()
    np.testing.assert_array_equal(adapter.decision_function(grown), own.decision_function(grown))
