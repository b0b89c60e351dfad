import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from degem import metrics
from degem.errors import DegemError

some_scores = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=25)
ALL = [
    metrics.auroc_id_positive,
    metrics.auroc_ood_positive,
    metrics.aupr_id_positive,
    metrics.aupr_ood_positive,
    metrics.fpr95_id_positive,
    metrics.fpr95_ood_positive,
    metrics.auroc_interval,
    metrics.paper_metrics,
]


def plain_auroc(id_scores, ood_scores):
    return np.mean([(i < o) + 0.5 * (i == o) for i, o in product(id_scores, ood_scores)])


def plain_average_precision(positives, negatives):
    """Higher = more positive: the sum over thresholds, from the top, of precision × gain in recall."""
    total, before = 0.0, 0.0
    for threshold in sorted({*positives, *negatives}, reverse=True):
        hits = sum(score >= threshold for score in positives)
        alarms = sum(score >= threshold for score in negatives)
        recall = hits / len(positives)
        total += (recall - before) * hits / (hits + alarms)
        before = recall
    return total


def plain_fpr95(positives, negatives):
    """As the papers' program: from full recall downwards, the first threshold whose recall is nearest to 0.95."""
    thresholds = sorted({*positives, *negatives})
    while sum(score >= thresholds[0] for score in positives) == len(positives):
        full = thresholds.pop(0)  # ends at the highest threshold that still accepts every positive
        if not thresholds:
            break
    best, best_gap = 0.0, math.inf
    for threshold in [full, *thresholds]:
        recall = sum(score >= threshold for score in positives) / len(positives)
        if abs(recall - 0.95) < best_gap:
            best_gap = abs(recall - 0.95)
            best = sum(score >= threshold for score in negatives) / len(negatives)
    return best


@settings(max_examples=60)
@given(id_scores=some_scores, ood_scores=some_scores)
def test_every_metric_equals_its_plain_transcription(id_scores, ood_scores):
    turned_id, turned_ood = [-s for s in id_scores], [-s for s in ood_scores]
    assert metrics.auroc_id_positive(id_scores, ood_scores) == pytest.approx(plain_auroc(id_scores, ood_scores))
    assert metrics.auroc_ood_positive(id_scores, ood_scores) == pytest.approx(plain_auroc(id_scores, ood_scores))
    assert metrics.aupr_id_positive(id_scores, ood_scores) == pytest.approx(
        plain_average_precision(turned_id, turned_ood)
    )
    assert metrics.aupr_ood_positive(id_scores, ood_scores) == pytest.approx(
        plain_average_precision(ood_scores, id_scores)
    )
    assert metrics.fpr95_id_positive(id_scores, ood_scores) == pytest.approx(plain_fpr95(turned_id, turned_ood))
    assert metrics.fpr95_ood_positive(id_scores, ood_scores) == pytest.approx(plain_fpr95(ood_scores, id_scores))


def test_perfect_reversed_and_constant_scores():
    low, high = np.arange(100.0), np.arange(200.0, 300.0)
    assert metrics.paper_metrics(low, high) == metrics.Metrics(100.0, 100.0, 0.0)
    assert metrics.paper_metrics(high, low).auroc == 0.0
    assert metrics.paper_metrics(high, low).fpr95 == 100.0
    same = np.zeros(4)
    assert metrics.paper_metrics(same, same) == metrics.Metrics(50.0, 50.0, 100.0)


def test_the_two_sides_differ_where_they_should():
    id_scores, ood_scores = np.arange(100.0), np.array([50.0, 500.0, 501.0, 502.0])
    assert metrics.fpr95_id_positive(id_scores, ood_scores) == 0.25
    assert metrics.fpr95_ood_positive(id_scores, ood_scores) == 0.5  # recall 1 is nearer to 0.95 than 0.75
    assert metrics.aupr_id_positive(id_scores, ood_scores) > metrics.aupr_ood_positive(id_scores, ood_scores)


def test_recall_nearest_to_95_percent():
    id_scores = np.arange(20.0)
    assert metrics.fpr95_id_positive(id_scores, [18.5, 19.5]) == 0.5  # 19 of 20 accepted, one OOD below the 20th


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize(
    ("id_scores", "ood_scores", "reason"),
    [
        ([], [1.0], "no ID scores"),
        ([1.0], [], "no OOD scores"),
        ([1.0, np.nan], [1.0], r"ID scores hold NaN or infinities \(at 1\)"),
        ([1.0], [np.inf], "OOD scores hold NaN"),
        ([[1.0]], [1.0], "one a node"),
    ],
)
def test_what_cannot_be_measured_is_an_error(metric, id_scores, ood_scores, reason):
    with pytest.raises(DegemError, match=reason):
        metric(id_scores, ood_scores)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    truth = 0.5 * (1 + math.erf(1.5 / 2))  # two unit Gaussians 1.5 apart: Φ(1.5 / √2)
    held = 0
    for _ in range(200):
        low, high = metrics.auroc_interval(rng.standard_normal(40), 1.5 + rng.standard_normal(30))
        held += low <= truth <= high
    assert 0.92 <= held / 200 <= 0.99


def test_the_interval_at_the_ends():
    low, high = metrics.auroc_interval([0.0] * 30, [1.0] * 30)
    assert 0.8 < low < 1
    assert high == 1
    low, high = metrics.auroc_interval([1.0] * 30, [0.0] * 30)
    assert low == 0
    assert 0 < high < 0.2
    wide, narrow = (metrics.auroc_interval([0, 1, 2], [1, 2, 3], confidence=c) for c in (0.99, 0.5))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    with pytest.raises(DegemError, match="confidence"):
        metrics.auroc_interval([0], [1], confidence=1)


def test_accuracy():
    assert metrics.accuracy([0, 1, 2, -1], [0, 1, 1, 1]) == pytest.approx(2 / 3)
    with pytest.raises(DegemError, match="labelled"):
        metrics.accuracy([-1], [0])
    with pytest.raises(DegemError, match="shape"):
        metrics.accuracy([0, 1], [0])
