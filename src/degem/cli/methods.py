"""``degem methods``: the detectors there are."""

from __future__ import annotations

from degem.cli.common import AsJson, print_json


def methods(as_json: AsJson = False) -> None:
    """List the detectors, and what each needs.

    Example: degem methods --json
    """
    from degem.detectors.registry import METHODS

    facts = ("paper", "needs_labels", "needs_exposure")
    rows = [
        {"name": name, **{fact: getattr(method, fact) for fact in facts}} for name, method in sorted(METHODS.items())
    ]
    if as_json:
        print_json(rows)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("method", "paper", "needs labels", "needs OOD nodes")
    for row in rows:
        answers = ["yes" if row[fact] else "no" for fact in facts[1:]]
        table.add_row(str(row["name"]), str(row["paper"]), *answers)
    Console().print(table)
