"""``degem methods``: the detectors there are."""

from __future__ import annotations

from degem.cli.common import print_json, print_table
from degem.cli.options import AsJson


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
    print_table(
        ("method", "paper", "needs labels", "needs OOD nodes"),
        [(row["name"], row["paper"], *("yes" if row[fact] else "no" for fact in facts[1:])) for row in rows],
        texts=4,
    )
