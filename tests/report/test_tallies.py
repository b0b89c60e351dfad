"""Counts at every slider position equal counts made the slow way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from degem import calibration
from degem.groups import Groups
from degem.report import tallies


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(1, 60))
def test_counts_are_those_of_the_p_values(seed: int, num_nodes: int, num_calibration: int) -> None:
    rng = np.random.default_rng(seed)
    p = calibration.conformal_p_values(rng.standard_normal(num_calibration), rng.standard_normal(num_nodes) + 1)
    alphas = tallies.alpha_grid(0.05)
    level = tallies.levels(p, alphas)
    slow = [(p <= alpha).sum() for alpha in alphas]
    assert tallies.flagged_counts(level, len(alphas)).tolist() == slow
    groups = Groups("parity", ("even", "odd"), np.arange(num_nodes) % 2)
    by_group = tallies.flagged_counts(level, len(alphas), groups)
    assert by_group.sum(axis=0).tolist() == slow
    assert by_group[1, 40] == (p[1::2] <= alphas[40]).sum()


@pytest.mark.parametrize("alpha", [0.05, 0.037, 0.0005, 0.9])
def test_the_chosen_rate_is_on_the_slider(alpha: float) -> None:
    assert alpha in tallies.alpha_grid(alpha)


def test_thresholds_flag_the_nodes_that_p_values_flag() -> None:
    rng = np.random.default_rng(1)
    held_out, scores = rng.standard_normal(99), rng.standard_normal(500)
    p = calibration.conformal_p_values(held_out, scores)
    for alpha in tallies.alpha_grid(0.05):
        assert ((scores >= calibration.threshold(held_out, alpha)) == (p <= alpha)).all()


def test_a_stray_score_does_not_flatten_the_histogram() -> None:
    rng = np.random.default_rng(2)
    found = tallies.histogram([rng.standard_normal(500), np.append(rng.standard_normal(999), 1e9)])
    assert found.edges[-1] < 10
    assert found.clipped
    np.testing.assert_allclose(found.shares.sum(axis=1), 1)


@pytest.mark.parametrize("sample", [np.zeros(5), np.full(3, 1e12), np.array([4.0])])
def test_equal_scores_have_a_histogram(sample: np.ndarray) -> None:
    found = tallies.histogram([sample, sample])
    assert np.diff(found.edges).min() > 0
    np.testing.assert_allclose(found.shares.sum(axis=1), 1)
