"""``degem compare``: has the graph drifted between two windows?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from degem.cli import options
from degem.cli.common import check_page, print_json, print_table
from degem.errors import ParameterError

if TYPE_CHECKING:
    from degem.compare import Comparison

DRIFTED = 3


@options.takes_inputs
def compare(
    model: options.ModelArgument,
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="The graph of the window to compare with.")],
    current: Annotated[str, typer.Argument(metavar="CURRENT", help="The graph of the current window.")],
    out: Annotated[Path | None, typer.Option(metavar="PAGE", help="Write the comparison as a .html page.")] = None,
    mkdir: options.Mkdir = False,
    alpha: options.Alpha = 0.05,
    fail_on_drift: Annotated[
        float | None,
        typer.Option(metavar="LEVEL", min=0, max=1, help=f"Exit with {DRIFTED} where the p-value is at most LEVEL."),
    ] = None,
    permutations: Annotated[int, typer.Option(min=1, help="Random divisions a test draws.")] = 999,
    *,
    inputs: options.Inputs,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Score two graphs with one model and test whether CURRENT has drifted from REFERENCE.

    REFERENCE may be the training graph: nodes that the model was fitted on do not count. Permutation tests on the mean
    score and on the share of nodes flagged, corrected for being two; and the columns, classes and degrees that drifted
    most. An effect is how far two distributions are apart, from 0 to 1.

    Example: degem compare model last_week/ this_week/ --fail-on-drift 0.01
    """
    from degem.compare import compare as compare_windows

    check_page(out, mkdir)
    if fail_on_drift is not None and 2 / (permutations + 1) > fail_on_drift:
        raise ParameterError(
            f"{permutations} permutations cannot show a p-value of {fail_on_drift:g}: "
            f"ask for at least {round(2 / max(fail_on_drift, 1e-9))}"
        )
    detector = inputs.detector(model)
    windows = [inputs.graph(name, model=detector) for name in (reference, current)]
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
    def shown(name: str, value: float) -> str:
        return f"{value:.1%}" if name == "share flagged" else f"{value:.4g}"

    print_table(
        ("", "reference", "current", "p-value"),
        [
            (test.name, shown(test.name, test.reference), shown(test.name, test.current), f"{test.p_value:.3g}")
            for test in found.tests
        ],
    )
    answer = "The graph has drifted" if found.drifted(level) else "No sign of drift"
    if found.drifts:
        print_table(
            ("", "which", "reference", "current", "effect"),
            [(drift.kind, drift.name, drift.reference, drift.current, f"{drift.effect:.2f}") for drift in found.drifts],
            texts=4,
        )
    typer.echo(f"{answer}: p = {found.p_value:.3g} for both tests together, at a level of {level:g}.")
