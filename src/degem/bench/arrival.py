"""The protocol arrival: new ID nodes and a few OOD nodes join a graph, which is scored once."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from degem.bench.protocols import Outcome, accuracy_of, fit
from degem.detectors import Detector
from degem.shifts import Arrival, Growth

ALPHA = 0.05


def run(detector: Detector, arrival: Arrival, shifts: Sequence[str]) -> dict[str, Outcome]:
    """Fit a detector once and judge it on graphs that grow from its training graph.

    Arguments:
        detector: The detector, not fitted.
        arrival: What it learns from and is asked about.
        shifts: Names of shifts in the arrival.
    """
    seconds = fit(detector, arrival.train_graph, None)
    return {shift: judge(detector, arrival.grown[shift], seconds) for shift in shifts}


def judge(detector: Detector, growth: Growth, fit_seconds: float) -> Outcome:
    """New ID nodes against OOD nodes of a grown graph: how well scores tell them apart, and what p-values decide."""
    from degem.metrics import paper_metrics  # slow to load, and planning a run does without

    start = time.perf_counter()
    scored = detector._scored(growth.graph)
    seconds = time.perf_counter() - start
    flagged = detector.p_values(growth.graph) <= ALPHA
    scores = np.asarray(scored.scores)
    return Outcome(
        metrics=paper_metrics(scores[growth.new_id], scores[growth.ood]),
        acc=accuracy_of(detector, scored, growth.new_id, growth.labels),
        fit_seconds=fit_seconds,
        score_seconds=seconds,
        false_alarm=100 * float(flagged[growth.new_id].mean()),
        found=100 * float(flagged[growth.ood].mean()),
    )
