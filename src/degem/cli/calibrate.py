"""``degem calibrate``: new calibration nodes for a model, without a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from degem.cli import options
from degem.cli.common import answer, check_folder, ids_in
from degem.errors import ParameterError


@options.takes_inputs
def calibrate(
    model: options.ModelArgument,
    graph: options.GraphArgument,
    nodes: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Ids of nodes confirmed as in-distribution, one a line.",
            show_default="labelled nodes that were not there at the fit",
        ),
    ] = None,
    out: options.ModelOut = None,
    mkdir: options.Mkdir = False,
    *,
    inputs: options.Inputs,
    as_json: options.AsJson = False,
) -> None:
    """Renew the calibration nodes of MODEL from nodes of GRAPH confirmed as in-distribution; nothing is fitted.

    The nodes must not have been in the training graph: those that have arrived since are best.

    Example: degem calibrate model march/ --nodes confirmed.txt
    """
    check_folder(out, mkdir)
    detector = inputs.detector(model)
    loaded = inputs.graph(graph, model=detector)
    if nodes is not None:
        wanted = ids_in(nodes)
    else:
        wanted = [str(name) for name in loaded.node_ids[loaded.labelled & detector.fit_nodes_.new_in(loaded)]]
        if not wanted:
            raise ParameterError(
                "no node of the graph is both labelled and new: name confirmed nodes with --nodes FILE"
            )
    before = len(getattr(detector, "calibration_", ()))
    detector.calibrate(loaded, wanted)
    detector.save(out or model)
    document = {"model": str(out or model), "calibration_nodes": len(wanted), "before": before}
    answer(document, as_json, f"calibrated on {len(wanted):,} nodes, {before:,} before: {out or model}")
