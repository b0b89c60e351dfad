"""A few thousand hostile inputs, killed writers and two savers at once; ``python -m fuzz`` tries more."""

import os
import warnings
from pathlib import Path

import pytest
from fuzz import harness, models, writers

# How many of each kind: all together take about half a minute.
COUNTS = {
    "CSV folders": 400,
    "Parquet folders": 250,
    "npz": 500,
    "memory maps": 400,
    "PyG": 400,
    "NetworkX": 300,
    "arrays": 500,
    "models, damaged": 100,
    "models, crafted": 200,
}
FEWER_METHODS = ["degem", "feature-knn", "iforest", "msp", "residualflow"]


@pytest.mark.parametrize("kind", COUNTS)
def test_hostile_inputs(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "METHODS", FEWER_METHODS)
    monkeypatch.setenv("DEGEM_CACHE", str(tmp_path / "0" / "cache"))
    monkeypatch.setenv("DEGEM_MAX_READ_MIB", harness.READ_LIMIT)
    outcomes = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for index in range(COUNTS[kind]):
            folder = tmp_path / str(index)
            folder.mkdir()
            os.environ["DEGEM_CACHE"] = str(folder / "cache")
            what = harness.attempt(kind, 0, index, folder)
            outcomes.append(harness.Outcome(kind, 0, index, what))
    assert [str(outcome) for outcome in outcomes if outcome.failed] == []
    if kind != "models, damaged":  # there no change goes unseen
        assert {outcome.what for outcome in outcomes} == {harness.ACCEPTED, harness.REFUSED}


def test_what_goes_wrong_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def wrong(*_: object) -> object:
        def attempt() -> None:
            raise KeyError("gone")

        return attempt

    monkeypatch.setitem(harness.KINDS, "npz", wrong)
    assert harness.attempt("npz", 0, 0, tmp_path).startswith("KeyError: 'gone' (test_fuzz.py:")


@pytest.mark.parametrize("name", writers.WRITERS)
def test_kill_9_leaves_nothing_half(name: str) -> None:
    assert writers.killed(name, 2, seed=0) == []


def test_two_savers_of_one_model() -> None:
    assert writers.two_savers(20) == []
