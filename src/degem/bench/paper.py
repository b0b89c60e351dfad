"""The figures that the paper printed, by table, dataset, shift, row and label rate; see ``published/SOURCE.md``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent / "published"
METRICS = ("auroc", "aupr", "fpr95", "acc")


@dataclass(frozen=True)
class Cell:
    """Where a figure stands in the paper.

    Arguments:
        table: ``main``, ``label_rate``, ``ablation``, ``gcl`` or ``homophily``.
        dataset: The dataset, in this project's spelling.
        shift: The shift.
        row: The method, in this project's spelling, or the variant where rows are variants.
        label_rate: The share of training labels.
    """

    table: str
    dataset: str
    shift: str
    row: str
    label_rate: float = 1.0


@cache
def published() -> dict[Cell, dict[str, float]]:
    """Every published cell, in percent; a metric the paper leaves out ("OOM") is NaN.

    Example:
        >>> published()[Cell("main", "cora", "structure", "degem")]["auroc"]
        99.93
    """
    table = pd.read_csv(FOLDER / "results.csv", dtype={"variant": str}, keep_default_na=True)
    figures: dict[Cell, dict[str, float]] = {}
    for row in table.to_dict("records"):
        dataset, name = str(row["dataset"]), str(row["method"]).lower()
        if row["table"] == "homophily":
            dataset = f"{dataset}-{str(row['variant']).removeprefix('homophily=')}"
        elif isinstance(row["variant"], str):
            name = row["variant"]
        cell = Cell(str(row["table"]), dataset, str(row["scenario"]), name, float(row["label_rate"]) / 100)
        figures[cell] = {metric: float(pd.to_numeric(row[metric], errors="coerce")) for metric in METRICS}
    return figures


@cache
def published_seconds() -> dict[tuple[str, str], float]:
    """Published training seconds by method and dataset.

    Example:
        >>> published_seconds()["degem", "cora"]
        11.64
    """
    table = pd.read_csv(FOLDER / "times.csv")
    rows = table[table["table"] == "training_seconds"].to_dict("records")
    return {
        (str(row["name"]).lower(), str(row["dataset"])): float(pd.to_numeric(row["seconds"], errors="coerce"))
        for row in rows
    }
