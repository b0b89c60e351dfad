"""How a detector is fitted and judged: strict, oracle or arrival.

- **strict**: a detector is handed the training graph (and exposure nodes, if it is one of the methods that need such)
  and nothing else; test and OOD nodes are touched only after ``fit`` has returned.
- **oracle**: the paper's: while it trains, the detector is scored on the test nodes, and for each shift the step with
  the highest test AUROC + test accuracy counts. Steps before there is anything to score (a flow that is learnt after
  the network, say) do not count; DeGEM trained in stages, its default, has none that do: the finished model counts.
- **arrival**: new ID nodes and OOD nodes are absent from the training graph, with their edges; both join, and the grown
  graph is scored once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from degem import calibration
from degem.calibration import ScoreResult
from degem.detectors import Detector
from degem.detectors.base import Epoch
from degem.errors import NotFittedError
from degem.graph import Graph, NodeSet
from degem.shifts import Arrival, Growth, Scenario

if TYPE_CHECKING:
    from degem.metrics import Metrics

ALPHA = 0.05  # of the decisions under arrival
ORACLE_LOOKS = 100  # at most so many looks at the test nodes while one fit trains


@dataclass(frozen=True)
class Outcome:
    """What one detector reached on one shift.

    Arguments:
        metrics: AUROC, AUPR and FPR95 in percent.
        acc: Accuracy on ID test nodes in percent, NaN without classes.
        fit_seconds: Seconds of the fit.
        score_seconds: Seconds of scoring the ID and the OOD graph.
        false_alarm: Share of new ID nodes with p ≤ 0.05 in percent, under arrival.
        found: Share of OOD nodes with p ≤ 0.05 in percent, under arrival.
    """

    metrics: Metrics
    acc: float
    fit_seconds: float
    score_seconds: float
    false_alarm: float = math.nan
    found: float = math.nan

    @property
    def worth(self) -> float:
        """What the oracle maximises: AUROC + accuracy."""
        return self.metrics.auroc + (0.0 if np.isnan(self.acc) else self.acc)


def run(protocol: str, detector: Detector, scenario: Scenario, shifts: Sequence[str]) -> dict[str, Outcome]:
    """Fit a detector once and judge it on shifts that share its training graph and its exposure nodes.

    Arguments:
        protocol: ``strict`` or ``oracle``; :func:`run_arrival` is for arrival.
        detector: The detector, not fitted.
        scenario: What it learns from and is asked about.
        shifts: Names of shifts in the scenario.
    """
    exposure = scenario.exposure[shifts[0]] if detector.needs_exposure else None
    if protocol == "oracle":
        return _run_oracle(detector, scenario, shifts, exposure)
    start = time.perf_counter()
    detector.fit(scenario.train_graph, exposure=exposure, calibrate=False)
    return judge(detector, scenario, shifts, seconds_since(start, detector))


def seconds_since(start: float, detector: Detector) -> float:
    """The seconds of a fit; a network trained before counts with its time."""
    return time.perf_counter() - start + float(getattr(detector, "spared_seconds_", 0.0))


def judge(
    detector: Detector,
    scenario: Scenario,
    shifts: Sequence[str],
    fit_seconds: float,
    score: Callable[[Graph], ScoreResult] | None = None,
) -> dict[str, Outcome]:
    """Score the ID and every OOD graph, each once, and compare; by ``score`` if it is not the detector's own."""
    from degem.metrics import paper_metrics  # slow to load, and planning a run does without

    passes: dict[int, tuple[ScoreResult, float]] = {}

    def scored(graph: Graph) -> tuple[ScoreResult, float]:
        if id(graph) not in passes:
            start = time.perf_counter()
            result = (score or detector.score)(graph)  # scores and classes from one pass
            passes[id(graph)] = result, time.perf_counter() - start
        return passes[id(graph)]

    inside, id_seconds = scored(scenario.id_test.graph)
    id_scores = np.asarray(inside.scores)[scenario.id_test.nodes]
    acc = accuracy_of(detector, inside, scenario.id_test.nodes, scenario.test_labels)
    outcomes = {}
    for shift in shifts:
        nodes = scenario.ood[shift]
        outside, ood_seconds = scored(nodes.graph)
        shared = nodes.graph is scenario.id_test.graph
        outcomes[shift] = Outcome(
            metrics=paper_metrics(id_scores, np.asarray(outside.scores)[nodes.nodes]),
            acc=acc,
            fit_seconds=fit_seconds,
            score_seconds=id_seconds + (0.0 if shared else ood_seconds),
        )
    return outcomes


def _run_oracle(
    detector: Detector, scenario: Scenario, shifts: Sequence[str], exposure: NodeSet | None
) -> dict[str, Outcome]:
    looks = _Looks(detector, scenario, shifts)
    start = time.perf_counter()
    detector.fit(scenario.train_graph, exposure=exposure, calibrate=False, on_epoch=looks)
    seconds = time.perf_counter() - start - looks.seconds
    looks.keep(judge(detector, scenario, shifts, seconds))
    return {shift: Outcome(best.metrics, best.acc, seconds, best.score_seconds) for shift, best in looks.best.items()}


@dataclass
class _Looks:
    """Called after each epoch of training; keeps, for each shift, the best outcome so far."""

    detector: Detector
    scenario: Scenario
    shifts: Sequence[str]
    best: dict[str, Outcome] = field(default_factory=dict)
    seconds: float = 0.0

    def __call__(self, epoch: Epoch) -> None:
        if epoch.done % max(1, math.ceil(epoch.total / ORACLE_LOOKS)):
            return
        start = time.perf_counter()
        with suppress(NotFittedError):  # what its score needs is not learnt yet
            self.keep(judge(self.detector, self.scenario, self.shifts, 0.0, epoch.score))
        self.seconds += time.perf_counter() - start

    def keep(self, outcomes: Mapping[str, Outcome]) -> None:
        for shift, outcome in outcomes.items():
            if shift not in self.best or outcome.worth > self.best[shift].worth:
                self.best[shift] = outcome


def accuracy_of(detector: Detector, scored: ScoreResult, nodes: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """Accuracy on nodes of a scored graph in percent, NaN where the detector has no classes or the nodes no labels."""
    from degem.metrics import accuracy

    if scored.probabilities is None or not (labels >= 0).any():
        return math.nan
    best = np.asarray(scored.probabilities)[nodes].argmax(axis=1)
    return 100 * accuracy(labels, np.asarray(detector.classes_)[best])


def run_arrival(detector: Detector, arrival: Arrival, shifts: Sequence[str]) -> dict[str, Outcome]:
    """Fit and calibrate a detector once and judge it on graphs that grow from its training graph.

    Arguments:
        detector: The detector, not fitted.
        arrival: What it learns from and is asked about.
        shifts: Names of shifts in the arrival.
    """
    start = time.perf_counter()
    detector.fit(arrival.train_graph)
    seconds = seconds_since(start, detector)
    return {shift: _arrival_outcome(detector, arrival.grown[shift], seconds) for shift in shifts}


def _arrival_outcome(detector: Detector, growth: Growth, fit_seconds: float) -> Outcome:
    """New ID nodes against OOD nodes of a grown graph: how well scores tell them apart, and what p-values decide."""
    from degem.metrics import paper_metrics  # slow to load, and planning a run does without

    start = time.perf_counter()
    judged = calibration.judge(detector, growth.graph)
    seconds = time.perf_counter() - start
    flagged, scores = judged.p_values() <= ALPHA, judged.result.scores
    return Outcome(
        metrics=paper_metrics(scores[growth.new_id], scores[growth.ood]),
        acc=accuracy_of(detector, judged.result, growth.new_id, growth.labels),
        fit_seconds=fit_seconds,
        score_seconds=seconds,
        false_alarm=100 * float(flagged[growth.new_id].mean()),
        found=100 * float(flagged[growth.ood].mean()),
    )
