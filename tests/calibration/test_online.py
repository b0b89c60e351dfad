"""Decisions over a stream: the rules as their papers print them, and a state that outlives the process."""

import math

import numpy as np
import pytest

from degem.calibration import OnlineFDR
from degem.errors import DegemError


def plain_lond(p_values, level):
    """LOND: the level of the j-th test is α γ_j (D_{j−1} + 1), γ_j ∝ log(j ∨ 2) / (j exp √log j)."""
    found, flags = 0, []
    for j, p in enumerate(p_values, start=1):
        gamma = 0.07720838 * math.log(max(j, 2)) / (j * math.exp(math.sqrt(math.log(j))))
        flags.append(p <= level * gamma * (found + 1))
        found += flags[-1]
    return flags


def plain_saffron(p_values, level, wealth, candidate=0.5):
    """SAFFRON with γ_j ∝ j^−1.6; only tests that are no candidates use up wealth."""

    def gamma(j):
        return 0.4374901658 / j**1.6

    flags, candidates = [], []
    for t, p in enumerate(p_values):
        finds = [i for i, flag in enumerate(flags) if flag]
        alpha = wealth * gamma(t + 1 - sum(candidates))
        for rank, i in enumerate(finds):
            share = level - wealth if rank == 0 else level
            alpha += share * gamma(t - i - sum(candidates[i + 1 :]))
        alpha = min(candidate, (1 - candidate) * alpha)
        flags.append(p <= alpha)
        candidates.append(p <= candidate)
    return flags


@pytest.fixture
def stream() -> np.ndarray:
    rng = np.random.default_rng(0)
    strange = rng.random(400) < 0.2
    return np.where(strange, 1e-4 * rng.random(400), rng.random(400))


def test_lond_equals_its_plain_transcription(stream: np.ndarray) -> None:
    flags = OnlineFDR(0.2).decide(stream)
    assert flags.any()
    assert flags.tolist() == plain_lond(stream, 0.2)


def test_saffron_equals_its_plain_transcription(stream: np.ndarray) -> None:
    flags = OnlineFDR(0.2, "saffron").decide(stream)
    assert flags.any()
    assert flags.tolist() == plain_saffron(stream, 0.2, 0.1)


@pytest.mark.parametrize("rule", ["lond", "saffron"])
def test_a_saved_stream_goes_on_as_if_it_had_not_stopped(stream: np.ndarray, rule, tmp_path) -> None:
    whole = OnlineFDR(0.2, rule).decide(stream)
    first = OnlineFDR(0.2, rule)
    flags = first.decide(stream[:150])
    first.save(tmp_path / "stream.json")
    again = OnlineFDR.load(tmp_path / "stream.json")
    assert (again.num_seen, again.fdr) == (150, 0.2)
    np.testing.assert_array_equal(np.concatenate([flags, again.decide(stream[150:])]), whole)


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"fdr": 0.1, "rule": "lond", "state": {}}', '{"fdr": 7, "rule": 1}']
)
def test_a_broken_state_is_refused_by_name(tmp_path, text: str) -> None:
    path = tmp_path / "stream.json"
    path.write_text(text)
    with pytest.raises(DegemError, match=r"stream\.json holds no state"):
        OnlineFDR.load(path)
