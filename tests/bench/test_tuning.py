import json
from pathlib import Path

import numpy as np
import pytest

from degem import Detector, Graph
from degem.bench.tuning import oracle_objective, space_of, strict_objective, tune
from degem.errors import DegemError, ParameterError
from degem.parameters import names
from degem.shifts import Scenario


def test_the_papers_space_is_whole_for_degem() -> None:
    space = space_of("degem-published")
    assert len(space) == 9
    assert set(space) <= set(names(Detector.registry["degem-published"]))
    assert set(space_of("degem")) < set(space)


@pytest.mark.parametrize("method", sorted(Detector.registry))
def test_every_choice_is_a_value_the_method_takes(method: str) -> None:
    space, defaults = space_of(method), Detector.registry[method]().get_params()
    assert set(space) <= set(defaults)
    for name, choices in space.items():
        for choice in choices:
            assert Detector.registry[method]().set_params(**{name: choice}).get_params()[name] == choice


def test_competitors_have_the_training_settings_and_their_own() -> None:
    training = {"learning_rate", "weight_decay", "dropout"}
    assert set(space_of("msp")) == training
    assert set(space_of("odin")) == training | {"temperature", "perturbation"}
    assert set(space_of("gnnsafe")) == training | {"self_weight", "num_propagations"}
    assert 1.0 not in space_of("gnnsafe")["self_weight"]  # nothing would be propagated
    assert set(space_of("energy-ft")) == training | {"exposure_weight", "margin_in", "margin_out"}
    assert set(space_of("oodgat")) == {"learning_rate", "dropout"}  # it has no weight decay


def test_exposure_methods_are_tuned_with_their_exposure_nodes(scenario: Scenario) -> None:
    exposure = next(iter(scenario.exposure.values()))
    objective = strict_objective(scenario.train_graph, 0, exposure)
    assert -100 <= objective(Detector.registry["oe"](num_epochs=3)) <= 100


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


@pytest.mark.parametrize("change", [{"seed": 1}, {"key": "other"}])
def test_another_seed_or_graph_is_another_study(tmp_path: Path, change: dict[str, object]) -> None:
    tried = []

    def objective(detector: Detector) -> float:
        tried.append(detector)
        return 1.0

    settings = {"seed": 0, "protocol": "strict", "name": "made", "key": "this", "num_trials": 1}
    tune("msp", objective, tmp_path, **settings)  # type: ignore[arg-type]
    tune("msp", objective, tmp_path, **settings | change)  # type: ignore[arg-type]
    assert len(tried) == 2


def test_a_study_whose_trials_all_fail_says_why_in_one_line(
    tmp_path: Path, small_graph: Graph, capfd: pytest.CaptureFixture[str]
) -> None:
    bare = small_graph.replace(labels=np.full(small_graph.num_nodes, -1))
    objective = strict_objective(bare, seed=0)
    with pytest.raises(DegemError, match=r"every trial failed .*MSP needs labelled nodes"):
        tune("msp", objective, tmp_path, num_trials=2, seed=0, protocol="strict", name="made")
    assert "Traceback" not in capfd.readouterr().err


def test_nothing_to_tune_is_said(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="nothing to tune"):
        tune("degree", lambda _: 0.0, tmp_path, num_trials=1, seed=0, protocol="strict", name="made")
