"""Curves and intervals against scikit-learn and against repetition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve, roc_curve

from degem.errors import GraphError
from degem.report import truth


@pytest.fixture
def scored() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    is_ood = rng.random(600) < 0.3
    return np.round(rng.standard_normal(600) + 1.5 * is_ood, 1), is_ood  # rounded: many ties


def test_curves_are_those_of_scikit_learn(scored) -> None:
    scores, is_ood = scored
    found = truth.curves(scores, is_ood)
    false_alarms, recall, _ = roc_curve(is_ood, scores, drop_intermediate=False)
    np.testing.assert_allclose(found.false_alarms, false_alarms)
    np.testing.assert_allclose(found.recall, recall)
    precision, _, _ = precision_recall_curve(is_ood, scores)
    np.testing.assert_allclose(found.precision[1:], precision[-2::-1])


def test_thinned_curves_stay_on_the_curve_and_keep_its_ends() -> None:
    rng = np.random.default_rng(1)
    is_ood = rng.random(50_000) < 0.01
    found = truth.curves(rng.standard_normal(50_000) + is_ood, is_ood)
    thin = found.thinned()
    assert len(thin.recall) <= truth.MAX_CURVE_POINTS
    assert (thin.recall[0], thin.recall[-1], thin.false_alarms[-1]) == (0, 1, 1)
    area = np.trapezoid(found.recall, found.false_alarms)
    assert np.trapezoid(thin.recall, thin.false_alarms) == pytest.approx(area, abs=0.005)


def test_intervals_hold_their_values_and_narrow_with_more_nodes(scored) -> None:
    scores, is_ood = scored
    few = truth.metrics(scores[:150], is_ood[:150], seed=0)
    many = truth.metrics(np.tile(scores, 4), np.tile(is_ood, 4), seed=0)
    for narrow, wide in zip(many, few, strict=True):
        assert wide.low <= wide.value <= wide.high
        assert narrow.high - narrow.low < wide.high - wide.low


@pytest.mark.parametrize("is_ood", [np.zeros(3), np.ones(3), np.zeros(2)])
def test_truth_needs_both_kinds_and_every_node(is_ood: np.ndarray) -> None:
    with pytest.raises(GraphError, match="ground truth"):
        truth.check_truth(is_ood, 3)
