"""``degem methods``: the detectors there are."""

from __future__ import annotations

from typing import Any

from degem.cli import options
from degem.cli.common import print_json, print_table
from degem.cli.messages import LOGGER

FACTS = ("paper", "needs_labels", "needs_exposure")


def methods(as_json: options.AsJson = False) -> None:
    """List the detectors, and what each needs.

    Example: degem methods --json
    """
    from degem.detectors.registry import METHODS, Registry
    from degem.errors import one_line

    registry = Registry(METHODS)
    rows: list[dict[str, Any]] = [
        {"name": name, **{fact: getattr(method, fact) for fact in FACTS}} for name, method in sorted(METHODS.items())
    ]
    for name, target in sorted(registry.plugins.items()):
        try:
            kind = registry[name]
            rows.append({"name": name, **{fact: getattr(kind, fact) for fact in FACTS}, "plugin": target})
        except Exception as error:  # another package's
            LOGGER.warning("%s of %s cannot be loaded: %s", name, target, one_line(error))
    if as_json:
        print_json(rows)
        return
    print_table(
        ("method", "paper", "needs labels", "needs OOD nodes"),
        [(row["name"], row["paper"], *("yes" if row[fact] else "no" for fact in FACTS[1:])) for row in rows],
        texts=4,
    )
