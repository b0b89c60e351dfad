"""What it costs to leave calibration nodes out, and whether cross-conformal p-values do better where labels are few.

    python benchmarks/hold_out.py            # four datasets, three seeds

Under arrival DeGEM is fitted without its calibration nodes, with them in the graph, and, for cross-conformal p-values
(Vovk, *Cross-conformal predictors*, 2015), five times, each time without another fifth of the labelled nodes:
p = (1 + the number of labelled nodes that score as high as the node in the fit without them) / (n + 1). Writes
``results/hold_out.csv`` and ``docs/hold-out.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure
import numpy as np
import pandas as pd

from degem import DeGEM
from degem.calibration import judge
from degem.metrics import auroc_ood_positive
from degem.shifts import Arrival, Settings, load_arrival
from degem.shifts.arrival_scenarios import arrivals_of
from degem.shifts.scenarios import kind_of

PAGE = Path(__file__).parents[1] / "docs" / "hold-out.md"
ALPHA, FOLDS = 0.05, 5
TEXT = """# What calibration costs

Written by `python benchmarks/hold_out.py` from `benchmarks/results/hold_out.csv`. Arrival, DeGEM, mean over seeds and
shifts, in percent. *split*: calibration nodes and their edges left out of the fit, as the default does; *in the fit*:
they stay in the training graph, without a promise; *cross-conformal*: five fits, each without a fifth of the labelled
nodes, their counts added.

"""


def main() -> None:
    table = measure.arrival_table(__doc__, "hold_out", measured, datasets="cornell,cora,chameleon,actor", seeds=3)
    columns = ["labelled", "auroc", "accuracy", "false_alarm", "found"]
    means = table.groupby(["dataset", "way"], sort=False)[columns].mean()
    text = means.map(lambda value: "" if pd.isna(value) else f"{value:.1f}").reset_index()
    PAGE.write_text(TEXT + measure.markdown_table(text), encoding="utf-8")


def measured(dataset: str, seed: int) -> Iterator[dict[str, Any]]:
    """One row a shift and a way to calibrate."""
    for kind in dict.fromkeys(map(kind_of, arrivals_of(dataset))):
        arrival = load_arrival(dataset, kind, Settings(seed=seed))
        yield from _split(arrival, seed)
        yield from _in_the_fit(arrival, seed)
        yield from _crossed(arrival, seed)


def _split(arrival: Arrival, seed: int) -> Iterator[dict[str, Any]]:
    detector = DeGEM(seed=seed).fit(arrival.train_graph)
    for shift in arrival.grown:
        yield _row(arrival, shift, seed, "split", detector, judge(detector, arrival.grown[shift].graph).p_values())


def _in_the_fit(arrival: Arrival, seed: int) -> Iterator[dict[str, Any]]:
    detector = DeGEM(seed=seed).fit(arrival.train_graph, calibrate=False)
    for shift in arrival.grown:
        yield _row(arrival, shift, seed, "in the fit", detector, None)


def _crossed(arrival: Arrival, seed: int) -> Iterator[dict[str, Any]]:
    graph = arrival.train_graph
    labelled = np.random.default_rng(seed).permutation(np.flatnonzero(graph.labelled))
    above = {shift: np.zeros(growth.graph.num_nodes) for shift, growth in arrival.grown.items()}
    for fold in np.array_split(labelled, FOLDS):
        held_out = np.isin(np.arange(graph.num_nodes), fold)
        detector = DeGEM(seed=seed).fit(graph, train_mask=graph.labelled & ~held_out, calibration_mask=held_out)
        for shift, growth in arrival.grown.items():
            judged = judge(detector, growth.graph)
            reference = np.sort(judged.calibration_scores)
            above[shift] += len(reference) - np.searchsorted(reference, judged.result.scores, side="left")
    for shift, counts in above.items():
        yield _row(arrival, shift, seed, "cross-conformal", None, (1 + counts) / (len(labelled) + 1))


def _row(
    arrival: Arrival, shift: str, seed: int, way: str, detector: DeGEM | None, p_values: np.ndarray | None
) -> dict[str, Any]:
    growth = arrival.grown[shift]
    row: dict[str, Any] = {"dataset": arrival.dataset, "shift": shift, "seed": seed, "way": way}
    row["labelled"] = int(arrival.train_graph.labelled.sum())
    if detector is not None:
        result = detector.score(growth.graph)
        row["auroc"] = 100 * auroc_ood_positive(result.scores[growth.new_id], result.scores[growth.ood])
        assert result.probabilities is not None
        guess = np.asarray(detector.classes_)[result.probabilities[growth.new_id].argmax(axis=1)]
        row["accuracy"] = 100 * float(np.mean(guess == growth.labels))
    if p_values is not None:
        flags = p_values <= ALPHA
        row["false_alarm"], row["found"] = 100 * flags[growth.new_id].mean(), 100 * flags[growth.ood].mean()
    return row


if __name__ == "__main__":
    measure.find_datasets()
    main()
