"""``degem explain``: why some nodes got their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from degem.cli import options
from degem.cli.common import print_json, shown

if TYPE_CHECKING:
    from degem.explain import Explanation


@options.takes_inputs
def explain(
    model: options.ModelArgument,
    graph: options.GraphArgument,
    nodes: Annotated[list[str], typer.Argument(metavar="NODE…", help="The ids of the nodes to explain.")],
    reference: options.Reference = None,
    *,
    inputs: options.Inputs,
    as_json: options.AsJson = False,
) -> None:
    """Say why NODEs of GRAPH got their scores: which columns, neighbours and surroundings raised and lowered them.

    The parts add up to the difference from ordinary nodes that are most like the node.

    Example: degem explain model my_graph/ paper-17 paper-23
    """
    from degem.calibration.judged import rows_named
    from degem.explain import explain as explained

    detector = inputs.detector(model)
    loaded = inputs.graph(graph, model=detector)
    trained_on = None if reference is None else inputs.graph(reference, model=detector)
    found = explained(detector, loaded, rows_named(loaded, nodes), reference=trained_on)
    if as_json:
        print_json([explanation.to_dict() for explanation in found])
    else:
        for explanation in found:
            _print(explanation)


def _print(found: Explanation) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(shown(f"{found.node_id}: score {found.score:.4g}, p = {found.p_value:.3g}", "bold"))
    console.print(shown(found.summary))
    table = Table("moved the score", "by", "because of", box=SIMPLE)
    for part in found.parts:
        table.add_row(shown(part.name), f"{part.amount:+.3g}", shown(part.detail), end_section=part is found.parts[-1])
    rise = found.score - found.typical_score
    table.add_row("together", f"{rise:+.3g}", shown(f"against {', '.join(found.typical_nodes)}"))
    console.print(table)
    for near in found.nearest:
        label = "" if near.class_name is None else f", class {near.class_name}"
        console.print(shown(f"near training node {near.node_id} (distance {near.distance:.3g}{label})"))
