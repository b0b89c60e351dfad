import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from degem import calibration
from degem.errors import DegemError

few_scores = st.lists(st.integers(-5, 5).map(float), max_size=30)


def plain_p_values(reference, scores):
    return [(1 + sum(c >= s for c in reference)) / (len(reference) + 1) for s in scores]


def plain_benjamini_hochberg(p_values, level):
    """Walk down from the largest p-value; the first that passes takes all smaller ones with it."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    for rank in range(len(order), 0, -1):
        if p_values[order[rank - 1]] <= level * rank / len(order):
            return [p <= p_values[order[rank - 1]] for p in p_values]
    return [False] * len(p_values)


@given(reference=few_scores, scores=few_scores)
def test_p_values_equal_their_plain_transcription(reference, scores):
    assert calibration.conformal_p_values(reference, scores).tolist() == plain_p_values(reference, scores)


def test_without_calibration_nodes_nothing_can_be_said():
    assert calibration.conformal_p_values([], [1.0, math.inf]).tolist() == [1, 1]
    assert calibration.threshold([], 0.5) == math.inf
    assert calibration.stratified_p_values([], [], [1.0], [3]).tolist() == [1]


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_false_alarms_stay_below_alpha(alpha):
    """Averaged over calibration sets, as the guarantee says: one set's own rate is random."""
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(2000):
        p = calibration.conformal_p_values(rng.standard_normal(59), rng.standard_normal(50))
        rates.append(np.mean(p <= alpha))
    expected = math.floor(alpha * 60) / 60
    assert expected <= alpha
    assert np.mean(rates) == pytest.approx(expected, abs=4 * np.std(rates) / math.sqrt(len(rates)))


def test_ties_can_only_lower_the_false_alarms():
    rng = np.random.default_rng(1)
    rates = [
        np.mean(calibration.conformal_p_values(rng.integers(0, 3, 99), rng.integers(0, 3, 50)) <= 0.1)
        for _ in range(200)
    ]
    assert np.mean(rates) <= 0.1


@given(
    p_values=st.lists(st.integers(0, 20).map(lambda k: k / 20), max_size=20), level=st.sampled_from([0.05, 0.2, 0.5])
)
def test_benjamini_hochberg_equals_its_plain_transcription(p_values, level):
    flags = calibration.benjamini_hochberg(p_values, level)
    assert flags.dtype == np.bool_
    assert flags.tolist() == plain_benjamini_hochberg(p_values, level)


def test_the_false_discovery_rate_stays_below_the_level():
    rng = np.random.default_rng(2)
    shares = []
    for _ in range(300):
        scores = np.concatenate([rng.standard_normal(160), 4 + rng.standard_normal(40)])
        flags = calibration.benjamini_hochberg(calibration.conformal_p_values(rng.standard_normal(500), scores), 0.2)
        shares.append(flags[:160].sum() / max(flags.sum(), 1))
    assert np.mean(shares) <= 0.2
    assert np.mean(shares) > 0.08  # and the level is used, not merely kept


@given(reference=few_scores, scores=few_scores, alpha=st.sampled_from([0.05, 0.1, 0.25, 0.29, 0.5, 0.9, 0.999]))
def test_the_threshold_makes_the_same_decisions_as_the_p_values(reference, scores, alpha):
    flagged = np.asarray(scores) >= calibration.threshold(reference, alpha)
    assert flagged.tolist() == (calibration.conformal_p_values(reference, scores) <= alpha).tolist()


@given(alpha=st.floats(0.001, 0.99))
def test_nodes_needed_is_the_least_number_that_can_flag(alpha):
    count = calibration.nodes_needed(alpha)
    assert 1 / (count + 1) <= alpha * (1 + 1e-8)
    assert count == 0 or 1 / count > alpha * (1 - 1e-8)


@pytest.mark.parametrize(("alpha", "count"), [(0.5, 1), (0.05, 19), (0.01, 99), (0.001, 999)])
def test_nodes_needed_for_the_usual_levels(alpha, count):
    assert calibration.nodes_needed(alpha) == count
    assert calibration.conformal_p_values(np.zeros(count), [1.0])[0] <= alpha
    assert calibration.conformal_p_values(np.zeros(count - 1), [1.0])[0] > alpha


# -- degree strata -----------------------------------------------------------------------------------------------


@given(degrees=st.lists(st.integers(0, 8), max_size=200), fewest=st.integers(1, 30))
def test_no_stratum_is_too_small(degrees, fewest):
    bounds = calibration.degree_strata(degrees, fewest)
    assert np.all(np.diff(bounds) > 0)
    assert len(bounds) <= 3
    if len(bounds):
        assert np.bincount(np.searchsorted(bounds, degrees), minlength=len(bounds) + 1).min() >= fewest


def test_equal_degrees_are_one_stratum_for_everybody():
    p = calibration.stratified_p_values(np.arange(99.0), np.full(99, 5), [98.5, 98.5], [5, 700])
    assert p.tolist() == [0.01, 0.01]


def test_strata_hold_the_rate_for_leaves_and_hubs_where_one_threshold_does_not():
    rng = np.random.default_rng(3)
    rates = {"one": [], "strata": []}
    for _ in range(100):
        degrees = np.repeat([1, 50], 100)
        reference, scores = (rng.standard_normal(200) * np.where(degrees == 1, 4, 1) for _ in range(2))
        one = calibration.conformal_p_values(reference, scores)
        strata = calibration.stratified_p_values(reference, degrees, scores, degrees)
        for name, p in (("one", one), ("strata", strata)):
            rates[name].append([np.mean(p[:100] <= 0.1), np.mean(p[100:] <= 0.1)])
    assert np.mean(rates["one"], axis=0)[0] > 0.15
    assert np.mean(rates["one"], axis=0)[1] < 0.05
    assert np.mean(rates["strata"], axis=0) == pytest.approx([0.1, 0.1], abs=0.02)


def test_the_smallest_stratum():
    assert calibration.smallest_stratum([]) == 0
    assert calibration.smallest_stratum([3] * 7) == 7
    assert calibration.smallest_stratum([1] * 40 + [2] * 25 + [9] * 10) == 35


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, -0.1, math.nan, 5])
def test_levels_outside_zero_and_one(level):
    for ask in (
        lambda: calibration.threshold([1.0], level),
        lambda: calibration.benjamini_hochberg([0.5], level),
        lambda: calibration.nodes_needed(level),
    ):
        with pytest.raises(DegemError, match="strictly between 0 and 1"):
            ask()


def test_nan_and_wrong_shapes():
    with pytest.raises(DegemError, match="number 1 is NaN"):
        calibration.conformal_p_values([0.0, math.nan], [1.0])
    with pytest.raises(DegemError, match="number 0 is NaN"):
        calibration.conformal_p_values([0.0], [math.nan])
    with pytest.raises(DegemError, match="NaN"):
        calibration.benjamini_hochberg([math.nan], 0.1)
    with pytest.raises(DegemError, match="NaN"):
        calibration.threshold([math.nan], 0.1)
    with pytest.raises(DegemError, match="shape"):
        calibration.conformal_p_values([0.0], [[1.0]])
    with pytest.raises(DegemError, match="one degree for each score"):
        calibration.stratified_p_values([0.0], [1], [1.0, 2.0], [1])
