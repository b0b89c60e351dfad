import json
import math
import time
from typing import Any

import pytest

from degem import Detector
from degem.bench.specs import Task, Variant
from degem.bench.store import Row
from degem.bench.worker import Group, results
from degem.shifts import Scenario
from degem.training import History, train


def group(*variants: Variant) -> Group:
    shifts = ("structure", "feature")
    return tuple(Task(variant, "made", shift, 0, "strict", 1.0) for variant in variants for shift in shifts)


def rows_of(work: Group, scenario: Scenario) -> list[Row]:
    return [row for rows in results(work, lambda: scenario) for row in rows]


def test_a_method_is_fitted_once_for_all_shifts_and_once_for_each_exposure_set(scenario: Scenario) -> None:
    rows = rows_of(group(Variant("learner", "learner"), Variant("exposed", "exposed")), scenario)
    assert len(rows) == 4
    trained = Detector.registry["learner"].fits  # type: ignore[attr-defined]
    assert [training.exposure is None for training in trained] == [True, False, False]
    assert trained[1].exposure is scenario.exposure["structure"]
    assert trained[2].exposure is scenario.exposure["feature"]
    assert rows[0].fit_seconds == rows[1].fit_seconds


def test_a_failed_cell_says_why_and_the_others_go_on(scenario: Scenario) -> None:
    rows = rows_of(group(Variant("bad", "learner", {"fails": True}), Variant("learner", "learner")), scenario)
    assert [bool(row.error) for row in rows] == [True, True, False, False]
    assert "RuntimeError: told to" in rows[0].error
    assert math.isnan(rows[0].auroc)


def test_a_scenario_that_cannot_be_made_fails_every_cell() -> None:
    def missing() -> Scenario:
        raise FileNotFoundError("no such data")

    (rows,) = results(group(Variant("learner", "learner")), missing)
    assert [row.error for row in rows] == ["FileNotFoundError: no such data"] * 2


@pytest.mark.parametrize("seconds", [100.0, -100.0])  # longer than the rest of a fit, and shorter
def test_methods_that_share_a_network_count_its_training(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    def long_training(*arguments: Any, **options: Any) -> History:
        return {**train(*arguments, **options), "seconds": [seconds]}

    monkeypatch.setattr("degem.detectors.backbone.train", long_training)
    settings = {"num_epochs": 40}
    rows = rows_of(group(Variant("msp", "msp", settings), Variant("energy", "energy", settings)), scenario)
    first, second = rows[0], rows[2]
    assert not first.error
    assert seconds < second.fit_seconds < seconds + 100
    assert json.loads(first.parameters)["set"] == settings
    assert first.peak_mib > 50


def test_the_harness_costs_little_beside_a_fit(scenario: Scenario) -> None:
    """Everything but fitting and scoring, per fit: milliseconds, where real fits take seconds."""
    work = group(*(Variant(f"v{number}", "learner", {"overshoot": float(number)}) for number in range(20)))
    start = time.process_time()
    rows = rows_of(work, scenario)
    spent = time.process_time() - start - sum(row.fit_seconds + row.score_seconds for row in rows[::2])
    assert spent / 20 < 0.1
