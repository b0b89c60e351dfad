"""What the commands share: checking and writing outputs, columns of nodes, printing."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from degem.cli.messages import tell
from degem.errors import GraphError, ParameterError, one_line

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray
    from rich.text import Text

    from degem import Graph, NodeSet


FORMULA = re.compile(r"[=+\-@\t\r](?![\d.]+$)")


def ids_in(path: Path) -> list[str]:
    """The ids in a file, one a line."""
    from degem.files import memory_limit, read_regular

    try:
        lines = read_regular(path, memory_limit()).decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise GraphError(f"--nodes {path} cannot be read: {error}") from None
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise GraphError(f"--nodes {path} holds no id: write one a line")
    return found


def truth_column(graph: Graph, name: str) -> NDArray[np.bool_]:
    """A column or mask of the node table as booleans."""
    import numpy as np

    if name in graph.masks:
        return graph.masks[name]
    if name not in graph.columns:
        known = ", ".join([*graph.columns, *graph.masks]) or "none"
        raise GraphError(f"the graph has no column {name!r}; columns that are neither id, label nor feature: {known}")
    column = graph.columns[name]
    words = np.char.lower(column.astype(str))
    truth = np.isin(words, ["true", "1", "1.0"])
    unknown = ~truth & ~np.isin(words, ["false", "0", "0.0"])
    if unknown.any():
        row = int(unknown.argmax())
        raise GraphError(f"column {name!r}, row {row + 1}: {str(column[row])!r} is neither true nor false")
    return truth


def exposed_nodes(graph: Graph, column: str | None) -> NodeSet | None:
    """The nodes that a column marks as known to be OOD; None without a column."""
    import numpy as np

    from degem import NodeSet

    return None if column is None else NodeSet(graph, np.flatnonzero(truth_column(graph, column)))


def check_folder(path: Path | None, mkdir: bool) -> None:
    """Refuse an output whose folder is missing: more often than not it is mistyped."""
    if path is not None and not mkdir and not path.absolute().parent.is_dir():
        raise ParameterError(f"{path}: there is no folder {path.parent}: correct it, or have it made with --mkdir")


def prepare_machine(threads: int | None, device: str | None) -> None:
    """Use that many CPU threads, and make sure that the device is there."""
    import torch
    from threadpoolctl import threadpool_limits

    from degem import parameters

    if device is not None:
        parameters.present_device(device)
    if threads is not None:
        torch.set_num_threads(threads)  # kernels follow it: degem.threads
        threadpool_limits(threads, user_api="blas")


STDOUT = Path("-")


def check_page(path: Path | None, mkdir: bool) -> None:
    """Refuse a page that is no ``.html`` file, or whose folder is missing."""
    if path is not None and path.suffix != ".html":
        raise ParameterError(f"{path}: a page is written to a .html file")
    check_folder(path, mkdir)


def check_table_path(path: Path) -> None:
    """Refuse a table's path whose suffix says no known format, before any work is done; ``-`` is standard output."""
    if path == STDOUT:
        return
    if path.suffix not in {".parquet", ".csv"}:
        raise ParameterError(f"{path}: a table is written to a .parquet or a .csv file")
    if path.is_dir():
        raise ParameterError(f"{path} is a folder: name a file")


def check_table_out(path: Path, mkdir: bool, as_json: bool) -> None:
    """Refuse an ``--out`` that a table of nodes cannot go to."""
    check_table_path(path)
    check_folder(path, mkdir)
    if as_json and path == STDOUT:
        raise ParameterError("--json and --out - both write to standard output: keep one")


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table to Parquet or CSV by its suffix; an interruption leaves the old file, or none.

    In CSV, text that a spreadsheet would take for a formula gets an apostrophe in front. ``-`` is CSV to standard
    output.
    """
    from degem.files import replaced

    check_table_path(path)
    target: Any = nullcontext(sys.stdout) if path == STDOUT else replaced(path, follow_link=True)
    with target as file:
        try:
            if path == STDOUT or path.suffix == ".csv":
                table.transform(_without_formulas).to_csv(file, index=False)
                file.flush()  # while a closed pipe is still an error that is caught
            else:
                table.to_parquet(file, index=False)
        except (ValueError, TypeError) as error:  # lone surrogates; in Parquet numbers and text in one column
            raise GraphError(
                f"{path}: the table cannot be written ({error}): rename what its text columns hold"
            ) from None


def _without_formulas(column: pd.Series) -> pd.Series:
    def safe(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value

    return column if column.dtype.kind in "biufM" else column.map(safe)


def shown(text: object, style: str = "") -> Text:
    """Text of the user's data for a terminal: no markup, no control characters."""
    from rich.text import Text

    return Text(one_line(text), style)


def print_json(document: Any) -> None:
    """Print JSON to stdout; NaN and infinities, which JSON does not know, as null."""
    typer.echo(json.dumps(_plain(document), indent=1, allow_nan=False))  # ASCII: names may hold control characters


def answer(document: Any, as_json: bool, text: str, *, err: bool = False) -> None:
    """Print what was done: a document for machines, or a line for people."""
    if as_json:
        print_json(document)
    else:
        tell(text, err=err)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None, texts: int = 1
) -> None:
    """Print a table whose first columns, ``texts`` of them, are text, and the others numbers."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE, show_edge=False, padding=0, show_header=any(headings))
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < texts else "right", no_wrap=place == 0)
    for row in rows:
        table.add_row(*map(shown, row))
    Console().print(table)
