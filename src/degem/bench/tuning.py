"""Search for parameters: the papers' search spaces, judged on in-distribution data.

The objective under **strict** is

    validation accuracy − |2 · AUROC(training nodes, validation nodes) − 100|,

both in percent, both from ID nodes alone. The first term says that the latent keeps what tells classes apart. The
second is the price of memory: held-out ID nodes are as in-distribution as training nodes, so a detector whose scores
tell the two apart (AUROC far from 50) has learnt the training nodes and would raise false alarms on new ones. Nothing
OOD, real or made up, enters: pseudo-OOD nodes that look like a benchmark's shift would be tuning on the test. Without
labels the first term is left out. Under **oracle** the objective is the paper's, test AUROC + test accuracy, and the
study's name says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from degem import parameters
from degem.bench.protocols import run
from degem.bench.store import made_folder
from degem.data.splits import random_split
from degem.detectors import Detector
from degem.errors import DegemError, ParameterError
from degem.extras import needs_extra
from degem.files import write_text
from degem.graph import Graph, NodeSet
from degem.metrics import accuracy, auroc_ood_positive
from degem.shifts import Scenario

Space = dict[str, tuple[float, ...]]
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
CLASSIFICATION = (0.01, 0.05, 0.1, 0.3, 0.5, 1.0)

# The paper's table of search spaces. Its first lines are for every method, as its baselines were searched too.
TRAINING: Space = {
    "learning_rate": (0.05, 0.01, 0.001, 0.0005, 0.0001),
    "weight_decay": (0.0, 0.01, 0.001, 0.0005, 0.0001),
    "dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
}
# The energy margins and the propagation that GNNSafe's authors searched; also for its successors.
MARGINS: Space = {
    "exposure_weight": (0.01, 0.1, 1.0),
    "margin_in": (-9.0, -7.0, -5.0),
    "margin_out": (-4.0, -3.0, -2.0, -1.0),
}
PROPAGATION: Space = {"self_weight": (0.1, 0.3, 0.5, 0.7, 0.9), "num_propagations": (1, 2, 3, 5, 8, 12, 16)}
OWN: dict[str, Space] = {
    # The rest of the paper's table. Its noise is a standard deviation in the authors' program, whatever its σ² says.
    "degem-published": {
        "self_weight": SHARES,
        "condition_weight": SHARES,
        "energy_readout_weight": SHARES,
        "langevin__step_size": (1.0, 5.0, 10.0),
        "langevin__noise_std": (0.01, 0.005),
        "classification_weight": CLASSIFICATION,
    },
    "degem": {"classification_weight": CLASSIFICATION},
    # Liang et al. 2018: ten temperatures, 21 steps from 0 to 0.004.
    "odin": {
        "temperature": (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
        "perturbation": tuple(round(0.0002 * i, 4) for i in range(21)),
    },
    "mahalanobis": {"perturbation": (0.0, 0.0005, 0.001, 0.0014, 0.002, 0.005, 0.01)},  # the program of Lee et al. 2018
    "knn": {"num_neighbors": (1, 10, 20, 50, 100, 200, 500)},  # Sun et al. 2022, as far as training nodes go
    "gnnsafe": PROPAGATION,
    "nodesafe": PROPAGATION,
    "energy-ft": MARGINS,
    "gnnsafe++": {**MARGINS, **PROPAGATION},
    # The two settings of GPN's authors, mixed.
    "gpn": {"latent_dim": (10, 16), "teleport": (0.1, 0.2), "entropy_weight": (1e-5, 1e-4)},
}
STUDY, BEST = "study.journal", "best.json"
Objective = Callable[[Detector], float]


@dataclass(frozen=True)
class Best:
    """The best trial of a study.

    Arguments:
        parameters: Its parameters.
        value: Its objective.
        num_trials: Finished trials in the study.
    """

    parameters: Mapping[str, Any]
    value: float
    num_trials: int


def space_of(method: str) -> Space:
    """What is searched for a method: the training settings it has, and its own.

    Arguments:
        method: A registered detector.

    Example:
        >>> sorted(space_of("knn"))
        ['dropout', 'learning_rate', 'num_neighbors', 'weight_decay']
    """
    known = set(parameters.names(Detector.registry[method]))
    return {name: choices for name, choices in TRAINING.items() if name in known} | OWN.get(method, {})


def strict_objective(graph: Graph, seed: int, exposure: NodeSet | None = None) -> Objective:
    """The objective from ID data alone, on the graph's own ``train`` and ``val`` masks or a seeded 80/20 split.

    Exposure nodes, for the methods that train on such, are trained on and not judged by.
    """
    if {"train", "val"} <= graph.masks.keys():
        train, val = graph.masks["train"], graph.masks["val"]
    else:
        inside = graph.labelled if graph.labelled.any() else np.ones(graph.num_nodes, dtype=np.bool_)
        split = random_split(inside, seed, train=0.8, val=0.2)
        train, val = split["train"], split["val"]

    def objective(detector: Detector) -> float:
        exposed = exposure if detector.needs_exposure else None
        detector.fit(graph, train_mask=train, calibration_mask=val, exposure=exposed)
        result = detector.score(graph)
        scores, probabilities = np.asarray(result.scores), result.probabilities
        value = -abs(200 * auroc_ood_positive(scores[train], scores[val]) - 100)
        if probabilities is not None and graph.labelled[val].any():
            guess = np.asarray(detector.classes_)[np.asarray(probabilities)[val].argmax(axis=1)]
            value += 100 * accuracy(graph.labels[val], guess)
        return value

    return objective


def oracle_objective(scenario: Scenario) -> Objective:
    """The paper's objective: test AUROC + test accuracy at the best step, mean over the scenario's shifts."""

    def objective(detector: Detector) -> float:
        outcomes = run("oracle", detector, scenario, list(scenario.ood))
        return float(np.mean([outcome.worth for outcome in outcomes.values()]))

    return objective


def tune(
    method: str,
    objective: Objective,
    folder: Path,
    *,
    num_trials: int,
    seed: int,
    protocol: str,
    name: str,
    key: str = "",
) -> Best:
    """Random search, as in the paper; every trial is kept, and a study that was interrupted goes on.

    Arguments:
        method: A registered detector.
        objective: What to maximise, of a detector that is not fitted.
        folder: Where the study is kept.
        num_trials: Trials in all, those of earlier calls included.
        seed: Seed of detectors and of the search.
        protocol: ``strict`` or ``oracle``; part of the study's name.
        name: What is tuned on; part of the study's name.
        key: What tells graphs of the same name apart; part of the study's name, as the seed is.
    """
    with needs_extra("bench", "tuning"):
        import optuna
        from optuna.storages.journal import JournalFileBackend
    space = space_of(method)
    if not space:
        raise ParameterError(f"{method} has no parameter in the search space: there is nothing to tune")
    made_folder(folder)
    optuna.logging.set_verbosity(optuna.logging.ERROR)  # else it prints a traceback for each trial that fails
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(folder / STUDY)))
    study_name = " ".join(filter(None, (f"{method} on {name}", key, f"seed {seed}, {protocol}")))
    study = optuna.create_study(storage=storage, study_name=study_name, direction="maximize", load_if_exists=True)
    done = [trial for trial in study.trials if trial.state.is_finished()]
    study.sampler = optuna.samplers.RandomSampler(seed=seed + len(done))  # a resumed search draws on, not again

    failures: list[str] = []

    def attempt(trial: optuna.Trial) -> float:
        drawn = {parameter: trial.suggest_categorical(parameter, choices) for parameter, choices in space.items()}
        try:
            return objective(Detector.registry[method](seed=seed).set_params(**drawn))
        except DegemError as error:
            failures.append(str(error))
            raise

    study.optimize(attempt, n_trials=max(0, num_trials - len(done)), catch=(DegemError,))
    finished = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.COMPLETE]
    if not finished:
        reason = failures[-1] if failures else f"in earlier runs, kept in {folder / STUDY}"
        raise DegemError(f"{study_name}: every trial failed ({reason})")
    best = Best(study.best_params, study.best_value, len(finished))
    metadata = {"method": method, "protocol": protocol, "on": name, "value": best.value, "parameters": best.parameters}
    write_text(folder / BEST, json.dumps(metadata, indent=1) + "\n")
    return best
