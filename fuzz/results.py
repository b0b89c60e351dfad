"""What was tried and what failed: rows in ``fuzz/results.csv``, and the tables of ``docs/reliability.md`` from them."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from degem.files import write_text

FILE = Path(__file__).with_name("results.csv")
PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"


@dataclass(frozen=True)
class Row:
    """One kind of input, or one writer that was killed, and one seed.

    Arguments:
        table: ``inputs`` or ``faults``.
        kind: What was tried.
        seed: The seed.
        tried: How often.
        refused: How often the answer was an error of one line.
        failed: How often something went wrong.
    """

    table: str
    kind: str
    seed: int
    tried: int
    refused: int
    failed: int


def rows(path: Path = FILE) -> list[Row]:
    """The rows of the file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [Row(*(line[:2]), *map(int, line[2:])) for line in list(csv.reader(file))[1:]]


def record(new: list[Row], path: Path = FILE) -> None:
    """Add rows, in place of those of the same kind and seed, and write them to the file."""
    kept = {(row.table, row.kind, row.seed): row for row in [*rows(path), *new]}
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [[field.name for field in fields(Row)], *map(astuple, kept.values())]
    )
    write_text(path, text.getvalue())


def table(found: list[Row]) -> str:
    """Rows as a table in Markdown, the seeds of a kind together."""
    lines = [("kind", "tried", "refused", "failed"), ("---", "---:", "---:", "---:")]
    for kind in [*dict.fromkeys(row.kind for row in found), "all"]:
        own = [row for row in found if kind in (row.kind, "all")]
        sums = [sum(getattr(row, name) for row in own) for name in ("tried", "refused", "failed")]
        lines.append((kind, *(f"{count:,}" for count in sums)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(text: str, found: list[Row]) -> str:
    """The page with its tables as the rows say, each between two comments.

    Example:
        >>> page("<!-- inputs -->old<!-- end -->", [Row("inputs", "npz", 0, 9, 8, 0)]).splitlines()[3]
        '| npz | 9 | 8 | 0 |'
    """
    for name in ("inputs", "faults"):
        told = table([row for row in found if row.table == name])
        text = re.sub(rf"(<!-- {name} -->).*?(<!-- end -->)", rf"\1\n{told}\n\2", text, flags=re.DOTALL)
    return text
