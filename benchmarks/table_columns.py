"""What encoding a table's columns does to the scores: amazon-fraud as a table, its columns as they are and encoded.

Run ``python benchmarks/table_columns.py``; it prints a table of AUROC (arrival, mean of the seeds) and of the share of
flags that change when the unit of each column does.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from degem import Detector, Graph
from degem.data.columns import Faults
from degem.data.treatments import column_values, learn_schema
from degem.schema import Treatment
from degem.shifts.arrival import Arrival
from degem.shifts.arrival_scenarios import load_arrival
from degem.shifts.base import Settings

METHODS = ("degem", "iforest", "feature-knn", "ecod")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    print("method, AUROC as they are, encoded, all logged, flags changed by units as they are, encoded")
    for method in arguments.methods:
        runs = np.array([list(_run(method, seed)) for seed in range(arguments.seeds)])
        print(method, *(f"{value:.1%}" for value in runs.mean(axis=0)), sep=", ")


def _run(method: str, seed: int) -> Iterator[float]:
    arrival = load_arrival("amazon-fraud", "fraud", Settings(seed=seed))
    units = np.power(10.0, np.random.default_rng(seed).integers(-3, 4, arrival.train_graph.num_features))
    judged = {how: _judged(method, seed, arrival, np.ones_like(units), how) for how in ("as is", "number", "skewed")}
    yield from (auroc for auroc, _ in judged.values())
    for how in ("as is", "number"):
        yield float(np.mean(judged[how][1] != _judged(method, seed, arrival, units, how)[1]))


def _judged(
    method: str, seed: int, arrival: Arrival, units: NDArray[np.float64], treatment: Treatment
) -> tuple[float, NDArray[np.bool_]]:
    """The AUROC of new nodes, and the flags of all."""
    growth = arrival.grown["fraud"]
    before, after = (graph.replace(features=graph.features * units) for graph in (arrival.train_graph, growth.graph))
    before, after = _encoded(before, after, treatment)
    detector = Detector.registry[method](seed=seed).fit(before)
    new = np.concatenate([growth.new_id, growth.ood])
    truth = np.isin(new, growth.ood)
    result = detector.score_table(after, alpha=0.05)
    return float(roc_auc_score(truth, result["score"].to_numpy()[new])), result["is_ood"].to_numpy()


def _encoded(before: Graph, after: Graph, treatment: Treatment) -> tuple[Graph, Graph]:
    names = [f"x{column}" for column in range(before.num_features)]
    tables = [pa.table(dict(zip(names, np.asarray(graph.features).T, strict=True))) for graph in (before, after)]
    everyone = np.ones(before.num_nodes, dtype=np.bool_)
    schema, _ = learn_schema(tables[0], dict.fromkeys(names, treatment), everyone, "error", Faults())
    first, second = (
        schema.encoded([column_values(column.name, table[column.name], column.treatment) for column in schema.used])[0]
        for table in tables
    )
    return before.replace(features=first), after.replace(features=second)


if __name__ == "__main__":
    main()
