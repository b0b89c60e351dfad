"""A few thousand hostile inputs, killed writers and two savers at once; ``python -m fuzz`` tries more."""

import errno
import os
import warnings
from pathlib import Path

import pytest
from fuzz import harness, models, results, writers

from degem.errors import DegemError

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
    "new nodes": 200,
    "streams": 300,
    "stores": 200,
    "calls": 200,
    "commands": 20,
    "hard graphs": 15,
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
    if kind not in ("models, damaged", "commands"):  # there no change goes unseen, and refusals are exit codes
        assert {outcome.what for outcome in outcomes} == {harness.ACCEPTED, harness.REFUSED}


def test_what_goes_wrong_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def wrong(*_: object) -> object:
        def attempt() -> None:
            raise KeyError("gone")

        return attempt

    monkeypatch.setitem(harness.KINDS, "npz", wrong)
    assert harness.attempt("npz", 0, 0, tmp_path).startswith("KeyError: 'gone' (test_fuzz.py:")


def test_rows_of_one_kind_and_seed_replace_each_other(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    results.record([results.Row("inputs", "models, damaged", 0, 5, 4, 1)], path)
    results.record([results.Row("inputs", "models, damaged", seed, 9, 8, 0) for seed in (0, 1)], path)
    assert results.table(results.rows(path)).splitlines()[2] == "| models, damaged | 18 | 16 | 0 |"


@pytest.mark.parametrize("name", writers.WRITERS)
def test_kill_9_leaves_nothing_half(name: str) -> None:
    assert writers.killed(name, 4, seed=0) == []


@pytest.mark.parametrize("name", writers.WRITERS)
def test_a_full_disk_names_the_file_and_leaves_the_old_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, read = writers.WRITERS[name]
    write(tmp_path, 2)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DegemError, match="cannot be written: the disk is full: make"):
        write(tmp_path, 4)
    if name != "a store":  # its line is whole, and only what the disk holds of it is not known
        assert read(tmp_path) == 2


def test_two_savers_of_one_model() -> None:
    assert writers.two_savers(20) == []
