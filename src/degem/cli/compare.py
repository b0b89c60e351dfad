"""``degem compare``: has the graph drifted between two windows?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from degem.cli.common import (
    Alpha,
    AsJson,
    Columns,
    Device,
    FeatureColumns,
    IdColumn,
    KeepColumns,
    LabelColumn,
    Mkdir,
    ModelArgument,
    Seed,
    Threads,
    check_folder,
    open_graph,
    prepare_machine,
    print_json,
)
from degem.errors import ParameterError

if TYPE_CHECKING:
    from degem.compare import Comparison

DRIFTED = 3


def compare(
    model: ModelArgument,
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="The graph of the window to compare with.")],
    current: Annotated[str, typer.Argument(metavar="CURRENT", help="The graph of the current window.")],
    out: Annotated[Path | None, typer.Option(metavar="PAGE", help="Write the comparison as a .html page.")] = None,
    mkdir: Mkdir = False,
    alpha: Alpha = 0.05,
    fail_on_drift: Annotated[
        float | None,
        typer.Option(metavar="LEVEL", min=0, max=1, help=f"Exit with {DRIFTED} where the p-value is at most LEVEL."),
    ] = None,
    permutations: Annotated[int, typer.Option(min=1, help="Random divisions a test draws.")] = 999,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    feature_columns: FeatureColumns = None,
    keep_columns: KeepColumns = None,
    seed: Seed = 0,
    device: Device = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Score two graphs with one model and test whether CURRENT has drifted from REFERENCE.

    Permutation tests on the mean score and on the share of nodes flagged, corrected for being two.

    Example: degem compare model last_week/ this_week/ --fail-on-drift 0.01
    """
    from degem import Detector
    from degem.compare import compare as compare_windows

    if out is not None and out.suffix != ".html":
        raise ParameterError(f"{out}: a page is written to a .html file")
    check_folder(out, mkdir)
    if fail_on_drift is not None and 2 / (permutations + 1) > fail_on_drift:
        raise ParameterError(
            f"{permutations} permutations cannot show a p-value of {fail_on_drift:g}: "
            f"ask for at least {round(2 / max(fail_on_drift, 1e-9))}"
        )
    prepare_machine(threads, device)
    detector = Detector.load(model, device=device)
    columns = Columns(id_column, label_column, feature_columns, keep_columns)
    windows = [open_graph(name, columns, features=detector.feature_names_) for name in (reference, current)]
    found = compare_windows(detector, *windows, alpha=alpha, num_permutations=permutations, seed=seed)
    level = 0.01 if fail_on_drift is None else fail_on_drift
    if out is not None:
        from degem.report import write_comparison

        write_comparison(found, out, level=level)
    if as_json:
        print_json(found.to_dict() | {"level": level, "drifted": found.drifted(level)})
    else:
        _print(found, level)
    if fail_on_drift is not None and found.drifted(fail_on_drift):
        raise typer.Exit(DRIFTED)


def _print(found: Comparison, level: float) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    table = Table("", "reference", "current", "p-value", box=SIMPLE)
    for test in found.tests:
        values = [
            f"{value:.1%}" if test.name == "share flagged" else f"{value:.4g}"
            for value in (test.reference, test.current)
        ]
        table.add_row(test.name, *values, f"{test.p_value:.3g}")
    console = Console()
    console.print(table)
    answer = "The graph has drifted" if found.drifted(level) else "No sign of drift"
    console.print(f"{answer}: p = {found.p_value:.3g} for both tests together, at a level of {level:g}.")
