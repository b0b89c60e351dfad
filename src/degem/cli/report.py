"""``degem report``: a scored graph as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from degem.cli import options
from degem.cli.common import check_page, truth_column
from degem.cli.messages import tell

REPORT_BUDGET = 1024.0  # MiB of hop features: a page of a million nodes then stays within 4 GiB, on any machine


@options.takes_inputs
def report(
    model: options.ModelArgument,
    graph: options.GraphArgument,
    out: Annotated[Path, typer.Option(metavar="PAGE", help="The .html file to write.")] = Path("report.html"),
    mkdir: options.Mkdir = False,
    alpha: options.Alpha = 0.05,
    ood: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column that says which nodes are OOD.")] = None,
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column with a time to break flags down by.")
    ] = None,
    reference: options.Reference = None,
    projection: Annotated[Literal["pca", "umap"], typer.Option("--map", help="The map of the latents.")] = "pca",
    *,
    inputs: options.Inputs,
) -> None:
    """Score GRAPH and write one HTML page: which nodes are flagged, how sure that is, and why.

    The page needs no network; its slider moves the threshold. Of large graphs it shows bins and samples, and says so.

    Example: degem report model my_graph/ --out report.html --ood is_ood
    """
    from degem.report import write_report

    check_page(out, mkdir)
    detector = inputs.detector(model)
    if detector.get_params().get("memory_budget", REPORT_BUDGET) is None:
        detector.set_params(memory_budget=REPORT_BUDGET)
    loaded = inputs.graph(graph, model=detector, needed=[ood, time])
    trained_on = None if reference is None else inputs.graph(reference, model=detector)
    write_report(
        detector,
        loaded,
        out,
        alpha=alpha,
        is_ood=None if ood is None else truth_column(loaded, ood),
        time=time,
        reference=trained_on,
        projection=projection,
        title=f"Which nodes of {Path(graph).name} not to trust",
    )
    tell(f"{out}: open it in a browser")
