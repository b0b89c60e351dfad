import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from degem import Detector, NodeSet
from degem.bench import protocols
from degem.bench.protocols import judge, run
from degem.metrics import auroc_id_positive
from degem.shifts import Scenario

LOOKED_INTO = ("msp", "mahalanobis", "knn", "gkde", "gpn", "oodgat")
QUICK: dict[str, dict[str, Any]] = {name: {"num_epochs": 3} for name in LOOKED_INTO}
QUICK["degem"] = {"num_epochs": 3, "latent_dim": 8}
QUICK["gkde"]["num_teacher_epochs"] = 2


class ForbiddenError(Exception):
    pass


class Untouchable(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise ForbiddenError(key)

    def __iter__(self) -> Iterator[str]:
        raise ForbiddenError

    def __len__(self) -> int:
        raise ForbiddenError


class UntouchableNodes(NodeSet):
    def __init__(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise ForbiddenError(name)


def guarded(scenario: Scenario) -> Scenario:
    return dataclasses.replace(
        scenario, ood=Untouchable(), exposure=Untouchable(), id_test=UntouchableNodes(), test_labels=UntouchableNodes()
    )


@pytest.mark.parametrize("method", ["learner", "degree", "msp", "degem"])
def test_nothing_but_the_training_graph_is_touched_before_fit_returns(
    method: str, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = []

    def stop(detector: Detector, *_: Any) -> dict[str, Any]:
        fitted.append(detector)
        return {}

    monkeypatch.setattr(protocols, "judge", stop)
    detector = Detector.registry[method](**QUICK.get(method, {}))
    run("strict", detector, guarded(scenario), ["structure", "feature"])
    assert fitted == [detector]


def test_the_oracle_does_touch_them_so_the_guard_works(scenario: Scenario) -> None:
    with pytest.raises(ForbiddenError):
        run("oracle", Detector.registry["learner"](), guarded(scenario), ["structure"])


def test_a_detector_is_handed_no_label_of_a_test_node(scenario: Scenario) -> None:
    run("strict", Detector.registry["learner"](), scenario, ["feature"])
    (training,) = Detector.registry["learner"].fits  # type: ignore[attr-defined]
    assert not training.graph.labelled[scenario.id_test.nodes].any()
    assert training.exposure is None
    assert not training.graph.masks


def test_one_fit_serves_every_shift_and_the_figures_are_right(scenario: Scenario) -> None:
    detector = Detector.registry["learner"]()
    outcomes = run("strict", detector, scenario, ["structure", "feature"])
    assert len(Detector.registry["learner"].fits) == 1  # type: ignore[attr-defined]
    inside = detector.decision_function(scenario.id_test.graph)[scenario.id_test.nodes]
    for shift, outcome in outcomes.items():
        outside = detector.decision_function(scenario.ood[shift].graph)
        assert outcome.metrics.auroc == pytest.approx(100 * auroc_id_positive(inside, outside))
        assert np.isnan(outcome.acc)


def test_accuracy_is_that_of_the_id_test_nodes(scenario: Scenario) -> None:
    detector = Detector.registry["msp"](num_epochs=30)
    outcome = run("strict", detector, scenario, ["feature"])["feature"]
    guess = detector.predict_class(scenario.id_test.graph)[scenario.id_test.nodes]
    assert outcome.acc == pytest.approx(100 * np.mean(guess == scenario.test_labels))
    assert outcome.acc > 50


def test_the_oracle_keeps_the_best_step_and_strict_the_last(scenario: Scenario) -> None:
    def reached(protocol: str, num_steps: int) -> float:
        detector = Detector.registry["learner"](overshoot=-2.0, num_steps=num_steps)
        return run(protocol, detector, scenario, ["feature"])["feature"].metrics.auroc

    steps = [reached("strict", count) for count in (1, 2, 3, 4)]
    assert reached("oracle", 4) == max(steps)
    assert max(steps) > steps[-1]


@pytest.mark.parametrize("method", LOOKED_INTO)
def test_the_oracle_looks_at_every_step(method: str, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []
    monkeypatch.setattr(protocols._Looks, "keep", lambda _, outcomes: kept.append(outcomes))
    run("oracle", Detector.registry[method](**QUICK[method]), scenario, ["feature"])
    assert len(kept) == 3 + 1


@pytest.mark.parametrize("method", ["degem", *LOOKED_INTO])
def test_the_oracle_can_look_into_real_training_without_changing_it(method: str, scenario: Scenario) -> None:
    kind = Detector.registry[method]
    watched, alone = kind(**QUICK[method]), kind(**QUICK[method])
    outcome = run("oracle", watched, scenario, ["feature"])["feature"]
    alone.fit(scenario.train_graph, calibrate=False)
    graph = scenario.id_test.graph
    np.testing.assert_array_equal(watched.decision_function(graph), alone.decision_function(graph))
    assert outcome.worth >= judge(alone, scenario, ["feature"], 0.0)["feature"].worth


@pytest.mark.parametrize(("num_steps", "looks"), [(100, 100), (199, 99), (250, 83)])
def test_the_oracle_never_looks_more_than_a_hundred_times(
    num_steps: int, looks: int, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []
    monkeypatch.setattr(protocols, "judge", lambda *_: {})
    monkeypatch.setattr(protocols._Looks, "keep", lambda _, outcomes: kept.append(outcomes))
    run("oracle", Detector.registry["learner"](num_steps=num_steps), scenario, ["feature"])
    assert len(kept) == looks + 1  # and the finished model


def test_degem_in_stages_is_not_looked_at_before_it_is_finished(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []
    monkeypatch.setattr(protocols._Looks, "keep", lambda _, outcomes: kept.append(outcomes))
    run("oracle", Detector.registry["degem"](**QUICK["degem"]), scenario, ["feature"])
    assert len(kept) == 1


def test_steps_before_there_is_a_score_do_not_count(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []
    monkeypatch.setattr(protocols._Looks, "keep", lambda _, outcomes: kept.append(outcomes))
    run("oracle", Detector.registry["residualflow"](num_epochs=3, num_flow_steps=4), scenario, ["feature"])
    assert len(kept) == 4 + 1
