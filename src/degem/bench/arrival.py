"""The protocol arrival: new ID nodes and a few OOD nodes join a graph, which is scored once."""

from __future__ import annotations

import time
from collections.abc import Sequence

from degem.bench.protocols import Outcome, accuracy_of, seconds_since
from degem.calibration import judge
from degem.detectors import Detector
from degem.shifts import Arrival, Growth

ALPHA = 0.05


def run(detector: Detector, arrival: Arrival, shifts: Sequence[str]) -> dict[str, Outcome]:
    """Fit and calibrate a detector once and judge it on graphs that grow from its training graph.

    Arguments:
        detector: The detector, not fitted.
        arrival: What it learns from and is asked about.
        shifts: Names of shifts in the arrival.
    """
    start = time.perf_counter()
    detector.fit(arrival.train_graph)
    seconds = seconds_since(start, detector)
    return {shift: outcome(detector, arrival.grown[shift], seconds) for shift in shifts}


def outcome(detector: Detector, growth: Growth, fit_seconds: float) -> Outcome:
    """New ID nodes against OOD nodes of a grown graph: how well scores tell them apart, and what p-values decide."""
    from degem.metrics import paper_metrics  # slow to load, and planning a run does without

    start = time.perf_counter()
    judged = judge(detector, growth.graph)
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
