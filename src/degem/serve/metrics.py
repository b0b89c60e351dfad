"""What Prometheus is told."""

from __future__ import annotations

import numpy as np
from scipy.stats import kstest

from degem.extras import needs_extra
from degem.serve.service import Service

with needs_extra("serve", "the service"):
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LATEST = 1000  # arrivals that shares and drift are of
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counters and gauges of one service.

    Arguments:
        service: The service.
    """

    def __init__(self, service: Service) -> None:
        self._service, self._registry = service, CollectorRegistry()
        labels = ["method", "path", "status"]
        self.requests = Counter("degem_requests", "Requests answered.", labels, registry=self._registry)
        self.seconds = Histogram(
            "degem_request_seconds", "Time to an answer.", ["path"], registry=self._registry, buckets=BUCKETS
        )
        for name, text, read in (
            ("degem_queue_events", "Events stored that scores do not have yet.", lambda: service.queue),
            ("degem_refresh_lag_seconds", "How long the oldest of these has waited.", lambda: service.lag),
            ("degem_event", "The event that scores are as of.", lambda: service.snapshot.event),
            ("degem_nodes", "Nodes that are there.", lambda: int(service.snapshot.alive.sum())),
            ("degem_rows_refreshed", "Rows scored by the last refresh.", lambda: service.snapshot.scoring.num_rows),
            ("degem_ignored_events", "Events that named a node that was gone.", lambda: service.ignored),
            ("degem_alpha", "The false-alarm rate that flags are at.", lambda: service.settings.alpha),
        ):
            Gauge(name, text, registry=self._registry).set_function(read)
        self._flagged = Gauge(
            "degem_flagged_share", f"Share of the last {LATEST} arrivals with p <= alpha.", registry=self._registry
        )
        self._drift = Gauge(
            "degem_score_drift",
            f"Kolmogorov-Smirnov distance of the last {LATEST} arrivals' p-values from uniform.",
            registry=self._registry,
        )

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        p_values = np.array([row["p_value"] for row in self._service.store.decisions(LATEST)])
        self._flagged.set(float((p_values <= self._service.settings.alpha).mean()) if len(p_values) else 0.0)
        self._drift.set(float(kstest(p_values, "uniform").statistic) if len(p_values) else 0.0)
        return generate_latest(self._registry)
