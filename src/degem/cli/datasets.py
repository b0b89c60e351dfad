"""``degem datasets``: the datasets there are."""

from __future__ import annotations

import math
from typing import Any

import typer

from degem.cli import options
from degem.cli.common import print_json, print_table


def datasets(
    data_dir: options.DataDir = None,
    as_json: options.AsJson = False,
) -> None:
    """List the datasets, their statistics, and whether they are on this machine.

    Example: degem datasets --data-dir data
    """
    from degem.data.datasets import DATASETS, data_root, missing_files

    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "nodes": dataset.num_nodes,
            "edges": dataset.num_edges,
            "features": dataset.num_features,
            "classes": dataset.num_classes,
            "homophily": dataset.homophily,
            "here": not (missing := missing_files(name, data_dir)),
            "needs": [f"{dataset.folder}/{path.name}" for path in missing],
            "note": dataset.note,
        }
        for name, dataset in DATASETS.items()
    ]
    if as_json:
        print_json(rows)
        return
    counts = ("nodes", "edges", "features", "classes")
    print_table(
        ("dataset", *counts, "homophily", "here"),
        [
            (
                row["name"],
                *(f"{row[count]:,}" for count in counts),
                "–" if math.isnan(row["homophily"]) else f"{row['homophily']:.2f}",
                "yes" if row["here"] else "no",
            )
            for row in rows
        ],
        title=f"datasets in {data_root(data_dir)}",
    )
    for row in rows:
        if row["note"]:
            typer.echo(f"{row['name']}: {row['note']}")
        if files := row["needs"]:
            others = f" and {len(files) - 1} more beside it" if len(files) > 1 else ""
            typer.echo(f"{row['name']}: needs {files[0]}{others}")
