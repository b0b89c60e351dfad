"""Each class of a dataset left out in turn: is a detector's label shift more than one lucky cut?

``python benchmarks/left_out_classes.py`` makes every class once the OOD one, whose nodes stay in the training graph
without a label, fits under the strict protocol, and writes ``benchmarks/results/left_out_classes.csv`` and
``docs/left-out-classes.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import measure
import numpy as np
import pandas as pd

from degem import Detector
from degem.bench.protocols import run
from degem.data.datasets import load_dataset
from degem.data.splits import random_split
from degem.graph import Graph
from degem.shifts.assembly import label_leave_out
from degem.shifts.base import Scenario, Settings, normalized

PAGE = Path(__file__).parents[1] / "docs" / "left-out-classes.md"
KEY = ["dataset", "method"]  # of what is measured in one go
INTRODUCTION = """# Left-out classes

Written by `python benchmarks/left_out_classes.py` from `benchmarks/results/left_out_classes.csv`. The benchmark's label
shift cuts each dataset's classes at one place. Here every class is the OOD one in turn, its nodes in the training graph
without a label; the split is a seeded 10/10/80 of the others. Strict protocol, AUROC in percent, mean over seeds
({seeds}); the first row of a dataset says how many nodes each class has. DeGEM's default was chosen on these cells and
seeds among others ([strict.md](strict.md)), the other methods' were not: its lead here is that of a development set.

"""


def leave_out(graph: Graph, left_out: int, seed: int) -> Scenario:
    """The scenario in which one class is OOD and there is no exposure."""
    others = np.where(graph.labels > left_out, graph.labels + 1, graph.labels + 2)
    labels = np.select([graph.labels < 0, graph.labels == left_out], [-1, 0], others)
    changed = graph.replace(labels=labels, class_names=None, masks={})
    return label_leave_out(changed, random_split(labels > 1, seed), 1, Settings(seed=seed))


def rows(dataset: str, methods: list[str], seed: int) -> Iterator[dict[str, object]]:
    """AUROC and accuracy of each method by the class that is left out."""
    graph = normalized(load_dataset(dataset))
    for left_out in range(int(graph.labels.max()) + 1):
        scenario = leave_out(graph, left_out, seed)
        for method in methods:
            found = run("strict", Detector.registry[method](seed=seed), scenario, ["label"])["label"]
            yield {
                "dataset": dataset,
                "class": left_out,
                "method": method,
                "seed": seed,
                "nodes": len(scenario.ood["label"].nodes),
                "auroc": found.metrics.auroc,
                "acc": found.acc,
            }


def page(frame: pd.DataFrame) -> str:
    """The Markdown page of the rows: classes across, the mean and the lowest beside them."""
    table = frame.pivot_table(index=["dataset", "method"], columns="class", values="auroc", sort=False)
    cells = table.map(lambda value: "" if np.isnan(value) else f"{value:.1f}")
    cells["mean"], cells["lowest"] = table.mean(axis=1).map("{:.1f}".format), table.min(axis=1).map("{:.1f}".format)
    sizes = frame.assign(method="nodes").pivot_table(
        index=["dataset", "method"], columns="class", values="nodes", sort=False
    )
    numbers = sizes.map(lambda value: "" if np.isnan(value) else f"{value:.0f}").assign(mean="", lowest="")
    cells = pd.concat([numbers, cells]).loc[frame["dataset"].unique()]
    return INTRODUCTION.format(seeds=measure.num_seeds(frame, KEY)) + measure.markdown_table(cells.reset_index())


def store(found: list[dict[str, object]]) -> None:
    """Keep the rows beside those of what was not measured now, and write the page of all."""
    path = measure.write(found, "left_out_classes", key=KEY)
    PAGE.write_text(page(pd.read_csv(path)), encoding="utf-8")


def main() -> None:
    """Measure, store, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", default="cora,amazon-photo,chameleon,actor,cornell")
    parser.add_argument("--methods", default="degem,msp,gnnsafe")
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    measure.find_datasets()
    methods = asked.methods.split(",")
    for dataset in asked.datasets.split(","):
        store([row for seed in range(asked.seeds) for row in rows(dataset, methods, seed)])
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
