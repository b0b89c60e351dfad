import json
from pathlib import Path

import pytest

from degem import Detector, Graph
from degem.bench.tuning import oracle_objective, space_of, strict_objective, tune
from degem.errors import ParameterError
from degem.parameters import names
from degem.shifts import Scenario


def test_the_papers_space_is_whole_for_degem() -> None:
    space = space_of("degem", published=True)
    assert len(space) == 9
    assert set(space) <= set(names(Detector.registry["degem"]))
    assert set(space_of("degem")) < set(space)
    assert set(space_of("msp")) == {"learning_rate", "weight_decay", "dropout"}


def test_the_strict_objective_prefers_one_that_does_not_memorise(small_graph: Graph) -> None:
    objective = strict_objective(small_graph, seed=0)
    worst = objective(Detector.registry["degree"]())
    assert -100 <= worst <= 0
    assert objective(Detector.registry["msp"](num_epochs=60)) > 50  # accuracy near 100, little gap


def test_a_study_goes_on_where_it_stopped(tmp_path: Path, small_graph: Graph) -> None:
    tried = []

    def objective(detector: Detector) -> float:
        tried.append(detector.get_params()["dropout"])
        return -float(detector.get_params()["dropout"])

    settings = {"seed": 0, "protocol": "strict", "name": "made"}
    tune("msp", objective, tmp_path, num_trials=3, **settings)  # type: ignore[arg-type]
    best = tune("msp", objective, tmp_path, num_trials=5, **settings)  # type: ignore[arg-type]
    assert (len(tried), best.num_trials) == (5, 5)
    assert best.value == max(-dropout for dropout in tried)
    stored = json.loads((tmp_path / "best.json").read_text())
    assert stored["parameters"]["dropout"] == min(tried)
    assert stored["protocol"] == "strict"
    tune("msp", objective, tmp_path, num_trials=5, **settings)  # type: ignore[arg-type]
    assert len(tried) == 5


def test_oracle_studies_are_kept_apart(tmp_path: Path, scenario: Scenario) -> None:
    value = oracle_objective(scenario)(Detector.registry["learner"]())
    assert 0 <= value <= 200
    tune("msp", lambda _: 1.0, tmp_path, num_trials=1, seed=0, protocol="strict", name="made")
    oracle = tune("msp", lambda _: 2.0, tmp_path, num_trials=1, seed=0, protocol="oracle", name="made")
    assert (oracle.value, oracle.num_trials) == (2.0, 1)


def test_nothing_to_tune_is_said(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="nothing to tune"):
        tune("degree", lambda _: 0.0, tmp_path, num_trials=1, seed=0, protocol="strict", name="made")
