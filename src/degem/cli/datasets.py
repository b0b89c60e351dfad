"""``degem datasets``: the datasets there are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from degem.cli.common import AsJson, print_json


def datasets(
    data_dir: Annotated[Path | None, typer.Option(help="Raw datasets.", show_default="$DEGEM_DATA")] = None,
    as_json: AsJson = False,
) -> None:
    """List the datasets, their statistics, and whether they are on this machine.

    Example: degem datasets --data-dir data
    """
    from degem.data.datasets import DATASETS, missing_files
    from degem.data.locations import data_root

    rows: list[dict[str, Any]] = []
    for name, dataset in DATASETS.items():
        missing = missing_files(name, data_dir)
        rows.append(
            {
                "name": name,
                "nodes": dataset.num_nodes,
                "edges": dataset.num_edges,
                "features": dataset.num_features,
                "classes": dataset.num_classes,
                "homophily": dataset.homophily,
                "here": not missing,
                "needs": [f"{dataset.folder}/{path.name}" for path in missing],
                "note": dataset.note,
            }
        )
    if as_json:
        print_json(rows)
        return
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Column, Table

    table = Table(
        Column("dataset", no_wrap=True),
        title=f"datasets in {data_root(data_dir)}",
        title_justify="left",
        box=SIMPLE,
        show_edge=False,
        padding=0,  # every column fits a terminal of 80
    )
    for column in ("nodes", "edges", "features", "classes", "homophily"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("here")
    for row in rows:
        counts = [f"{row[column]:,}" for column in ("nodes", "edges", "features", "classes")]
        here = "yes" if row["here"] else "no"
        homophily = "–" if math.isnan(row["homophily"]) else f"{row['homophily']:.2f}"
        table.add_row(str(row["name"]), *counts, homophily, here)
    console = Console()
    console.print(table)
    for row in rows:
        lines = [row["note"], _needs(row["needs"])]
        for line in filter(None, lines):
            console.print(f"{row['name']}: {line}", style="dim", highlight=False, soft_wrap=True)


def _needs(files: list[str]) -> str:
    others = f" and {len(files) - 1} more beside it" if len(files) > 1 else ""
    return f"needs {files[0]}{others}" if files else ""
