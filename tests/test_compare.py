"""Windows that are alike say so at the level asked for; windows that differ are caught."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import permutation_test as scipy_permutation_test

from degem import Graph
from degem.compare import MAX_DISTINCT, compare, permutation_test
from degem.detectors.msp import MSP


def test_p_values_are_those_of_shuffling() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal(30), rng.standard_normal(50) + 0.4
    ours = permutation_test("mean", first, second, 9_999, rng)
    theirs = scipy_permutation_test(
        (second, first),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        n_resamples=9_999,
        vectorized=True,
        rng=1,
    )
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=0.02)


@pytest.mark.parametrize("size", [60, 3 * MAX_DISTINCT])
def test_alike_windows_are_called_different_as_often_as_the_level_says(size: int) -> None:
    rng = np.random.default_rng(size)
    runs = 300 if size < MAX_DISTINCT else 60
    p = [
        permutation_test("x", rng.exponential(size=size), rng.exponential(size=2 * size), 99, rng).p_value
        for _ in range(runs)
    ]
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / runs))


def test_a_small_shift_in_a_large_window_is_seen() -> None:
    rng = np.random.default_rng(3)
    assert (
        permutation_test("x", rng.standard_normal(40_000), rng.standard_normal(40_000) + 0.05, 999, rng).p_value
        == 0.001
    )


@pytest.fixture(scope="module")
def detector(small_graph: Graph) -> MSP:
    return MSP(num_epochs=20).fit(small_graph)


def test_a_window_against_itself_has_not_drifted(detector: MSP, small_graph: Graph) -> None:
    found = compare(detector, small_graph, small_graph, alpha=0.2)
    assert found.p_value == 1
    assert not found.drifted(0.5)


def test_shuffled_features_are_drift(detector: MSP, small_graph: Graph) -> None:
    features = np.random.default_rng(0).standard_normal(small_graph.features.shape)
    found = compare(detector, small_graph, small_graph.replace(features=features.astype(np.float32)), alpha=0.2)
    assert found.drifted(0.01)
    assert found.tests[0].current > found.tests[0].reference


def test_breakdowns_cover_both_windows_and_are_json(detector: MSP, small_graph: Graph) -> None:
    found = compare(detector, small_graph, small_graph.subgraph(np.arange(50)), alpha=0.2)
    for shares in found.breakdowns.values():
        assert sum(share.reference_size for share in shares) == 120
        assert sum(share.current_size for share in shares) == 50
    flagged = sum(
        share.reference_size * share.reference_share for share in found.breakdowns["degree"] if share.reference_size
    )
    assert flagged == pytest.approx(120 * found.tests[1].reference)
    assert flagged > 0
    assert json.loads(json.dumps(found.to_dict()))["current_nodes"] == 50
