"""The default against the stored rows, within their spread over seeds: words in a few columns of a row, and in many."""

import json
from pathlib import Path

import numpy as np
import pytest

from degem import DeGEM
from degem.bench import protocols
from degem.bench.store import Store
from degem.shifts import Settings, load_arrival, load_scenario

STORED = Path(__file__).parents[2] / "benchmarks" / "results" / "bench"


def stored(protocol: str, dataset: str, shift: str) -> tuple[float, float]:
    """Mean and standard deviation over seeds of the default's stored AUROC."""
    rows = [row for row in Store(STORED).rows() if (row.method, row.dataset) == ("degem", dataset)]
    here = [row.auroc for row in rows if (row.protocol, row.shift) == (protocol, shift) and _is_default(row.parameters)]
    assert len(here) >= 3
    return float(np.mean(here)), float(np.std(here, ddof=1))


def _is_default(parameters: str) -> bool:
    settings = json.loads(parameters)
    return not settings["set"] and settings["label_rate"] == 1


@pytest.mark.parametrize(
    ("dataset", "kind"), [("cora", "manipulation"), ("cora", "label"), ("amazon-photo", "manipulation")]
)
def test_arrival(data_dir: Path, dataset: str, kind: str) -> None:
    arrival = load_arrival(dataset, kind, Settings(seed=0), data_dir)
    for shift, outcome in protocols.run_arrival(DeGEM(seed=0), arrival, list(arrival.grown)).items():
        mean, spread = stored("arrival", dataset, shift)
        assert outcome.metrics.auroc == pytest.approx(mean, abs=3 * spread + 0.5)


def test_strict(data_dir: Path) -> None:
    scenario = load_scenario("cora", "label", Settings(seed=0), data_dir)
    outcome = protocols.run("strict", DeGEM(seed=0), scenario, ["label"])["label"]
    mean, spread = stored("strict", "cora", "label")
    assert outcome.metrics.auroc == pytest.approx(mean, abs=3 * spread + 0.5)
