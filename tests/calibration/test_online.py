"""Decisions over a stream: the rules as their papers print them, and a state that outlives the process."""

import contextlib
import json
import math
import subprocess
import sys

import numpy as np
import pytest

from degem.calibration import OnlineFDR
from degem.errors import DegemError
from degem.model_file import checksum_of


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


def changed(path, **fields) -> None:
    """Put other values into a file of state, under a checksum that fits."""
    document = json.loads(path.read_text()) | fields
    document["checksum"] = checksum_of({name: document[name] for name in ("fdr", "rule", "history")})
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    "fields", [{"history": "fcx"}, {"history": 3}, {"fdr": 7}, {"fdr": "0.1"}, {"rule": "seq"}, {"more": 1}]
)
def test_a_state_that_no_stream_can_have_is_refused(tmp_path, fields) -> None:
    path = tmp_path / "stream.json"
    OnlineFDR(0.1).save(path)
    changed(path, **fields)
    with pytest.raises(DegemError, match=r"stream\.json holds no state of a stream"):
        OnlineFDR.load(path)


@pytest.mark.parametrize("text", ["", "{}", "[1]", "[" * 100_000, "9" * 5000, '{"fdr": 7, "rule": 1}'])
def test_a_broken_state_is_refused_by_name(tmp_path, text: str) -> None:
    path = tmp_path / "stream.json"
    path.write_text(text)
    with pytest.raises(DegemError, match=r"stream\.json holds no state"):
        OnlineFDR.load(path)


def test_a_damaged_state_is_seen(tmp_path) -> None:
    path = tmp_path / "stream.json"
    stream = OnlineFDR(0.1)
    stream.decide([1e-4, 0.9])
    stream.save(path)
    path.write_text(path.read_text().replace('"f."', '"ff"'))
    with pytest.raises(DegemError, match="it was altered"):
        OnlineFDR.load(path)


def test_a_linked_state_is_kept_a_link(tmp_path) -> None:
    (tmp_path / "link").symlink_to("stream.json")
    OnlineFDR(0.1).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert OnlineFDR.load(tmp_path / "stream.json").num_seen == 0


def test_a_failure_leaves_the_shared_state_as_it_was(tmp_path) -> None:
    with contextlib.suppress(KeyboardInterrupt), OnlineFDR.shared(tmp_path / "s", 0.1) as stream:
        stream.decide([0.5])
        raise KeyboardInterrupt
    assert not (tmp_path / "s").exists()


def test_those_who_share_a_state_take_turns(tmp_path) -> None:
    program = (
        "import sys; from pathlib import Path; from degem.calibration import OnlineFDR\n"
        "for _ in range(20):\n"
        "    with OnlineFDR.shared(Path(sys.argv[1]), 0.1) as stream: stream.decide([0.7] * 5)"
    )
    words = [sys.executable, "-c", program, str(tmp_path / "s")]
    runs = [subprocess.Popen(words) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    assert OnlineFDR.load(tmp_path / "s").num_seen == 200


@pytest.mark.parametrize("p", [[1.5], [-0.1], [math.inf], ["x"], [[0.5]], None])
def test_what_is_no_p_value_is_refused(p) -> None:
    with pytest.raises(DegemError, match="p-values"):
        OnlineFDR(0.1).decide(p)


@pytest.mark.parametrize("level", [0, 1, math.nan, "x", None, [0.1]])
def test_what_is_no_level_is_refused(level) -> None:
    with pytest.raises(DegemError, match="a level must lie strictly between 0 and 1"):
        OnlineFDR(level)
