"""``degem methods``: the detectors there are."""

from __future__ import annotations

from degem.cli.common import AsJson, print_json


def methods(as_json: AsJson = False) -> None:
    """List the detectors, and what each needs.

    Example: degem methods --json
    """
    from degem import Detector

    rows = [
        {
            "name": name,
            "paper": kind.paper,
            "needs_labels": kind.needs_labels,
            "needs_exposure": kind.needs_exposure,
            "inductive": kind.inductive,
        }
        for name, kind in sorted(Detector.registry.items())
    ]
    if as_json:
        print_json(rows)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("method", "paper", "needs labels", "needs OOD nodes", "scores new graphs")
    for row in rows:
        answers = ["yes" if row[key] else "no" for key in ("needs_labels", "needs_exposure", "inductive")]
        table.add_row(str(row["name"]), str(row["paper"]), *answers)
    Console().print(table)
