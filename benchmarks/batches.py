"""Mini-batches against the whole graph in every step: the same detector within noise?

    python benchmarks/batches.py                                        # every dataset, five seeds: hours
    python benchmarks/batches.py --datasets cora,chameleon --seeds 2    # minutes

Fits DeGEM at its defaults and with ``batch_size=None`` on each dataset and seed and compares the strict AUROC of every
shift. The rows go to ``results/batches.csv``.
"""

from __future__ import annotations

import argparse
from typing import Any

import measure
import pandas as pd
from speed import DATASETS, aurocs, kinds

from degem import DeGEM
from degem.shifts import Settings, load_scenario

SIZES: dict[str, int | None] = {"batch": 256, "whole": None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default=",".join(DATASETS), help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--no-write", action="store_true", help="leave benchmarks/results as it is")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for dataset in options.datasets.split(","):
        runs = [
            run
            for kind in kinds(dataset)
            for seed in range(options.seeds)
            for run in measure.in_child(both, dataset, kind, seed)
        ]
        new = summary(pd.DataFrame(runs))
        if not options.no_write:  # after each dataset: a run that is broken off keeps what it measured
            measure.write(new, "batches", key=["dataset"])
        rows += new
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.2f}".format))


def both(dataset: str, kind: str, seed: int) -> list[dict[str, Any]]:
    """AUROC of each shift, in mini-batches and with the whole graph."""
    scenario = load_scenario(dataset, kind, Settings(seed=seed))
    found = {
        name: aurocs(scenario, DeGEM(seed=seed, batch_size=size).fit(scenario.train_graph).decision_function)
        for name, size in SIZES.items()
    }
    return [
        {"dataset": dataset, "shift": shift, **{name: values[shift] for name, values in found.items()}}
        for shift in found["batch"]
    ]


def summary(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Mean and spread over seeds, and the mean difference with its standard error."""
    rows = []
    for (dataset, shift), group in runs.groupby(["dataset", "shift"], sort=False):
        difference = group["batch"] - group["whole"]
        rows.append(
            {
                "dataset": dataset,
                "shift": shift,
                "seeds": len(group),
                **{f"{name}_mean": group[name].mean() for name in SIZES},
                **{f"{name}_std": group[name].std() for name in SIZES},
                "difference": difference.mean(),
                "standard_error": difference.sem(),
            }
        )
    return rows


if __name__ == "__main__":
    measure.find_datasets()
    main()
