"""The tables of arrival: a figure of each shift with false alarms and finds beside it, and means by kind of shift.

And its page: what is promised, when it fails, and how far it held in the benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from degem.bench.formats import PLAIN, Grid
from degem.bench.results import Results
from degem.bench.specs import Spec
from degem.bench.store import Row
from degem.bench.summary import CEILING, PARTS, Entry, Overall, entries, notes
from degem.shifts.scenarios import kind_of

TEXT = Path(__file__).with_name("arrival.md").read_text(encoding="utf-8")
BESIDE = {"false_alarm": "false alarms", "found": "found"}
LEGEND = "False alarms and found: share of new ID and of OOD nodes with p ≤ 0.05, in percent; 5 % are asked for."
Line = tuple[tuple[str, int], ...]
Cells = dict[tuple[str, str, str], Entry]


def arrival_grids(
    spec: Spec, rows: Sequence[Row], metric: str, metric_name: str, *, by_shift: bool = False
) -> list[Grid]:
    """One table a dataset (or one narrow table a shift), and the means by kind of shift.

    Arguments:
        spec: The table.
        rows: Stored rows, of any table and protocol.
        metric: ``auroc``, ``aupr``, ``fpr95`` or ``acc``.
        metric_name: What the metric is called.
        by_shift: One narrow table a shift instead of one wide table a dataset.
    """
    table = entries(spec, rows, "arrival", metric)
    beside = _beside(spec, rows)
    found = []
    for dataset in dict.fromkeys(entry.dataset for entry in table):
        here = [entry for entry in table if entry.dataset == dataset]
        shifts = tuple(dict.fromkeys(entry.shift for entry in here))
        for columns in [(shift,) for shift in shifts] if by_shift else [shifts]:
            chosen = [entry for entry in here if entry.shift in columns]
            found.append(_dataset_grid(f"{spec.title}: {dataset}, {metric_name}", chosen, columns, beside))
    if table:
        found.append(_means_grid(f"{spec.title}: means by kind of shift, {metric_name}", table))
    return found


def _dataset_grid(title: str, here: list[Entry], shifts: tuple[str, ...], beside: dict[str, Cells]) -> Grid:
    header = ["method"]
    for shift in shifts:
        header += [shift, *BESIDE.values()]
    cells = {(entry.row, entry.shift): entry for entry in here}

    def line(row: str) -> Line:
        found = [(row, PLAIN)]
        for shift in shifts:
            entry = cells.get((row, shift))
            found.append((_figure(entry), entry.rank if entry else PLAIN))
            found += [(_figure(beside[name].get((here[0].dataset, shift, row))), PLAIN) for name in BESIDE]
        return tuple(found)

    failures = sorted({f"Failed: {entry.row}: {error}" for entry in here for error in entry.errors})
    return Grid(title, tuple(header), parts_of(here, line), (*notes(here, "arrival"), LEGEND, *failures))


def _means_grid(title: str, table: list[Entry]) -> Grid:
    """Means over the cells of a kind; a row that lacks one of them has none, or means would not compare."""
    kinds = {entry.shift: _kind(entry.shift) for entry in table}
    counts = {
        kind: len({(entry.dataset, entry.shift) for entry in table if kinds[entry.shift] == kind})
        for kind in dict.fromkeys(kinds.values())
    }

    def line(row: str) -> Line:
        found = [(row, PLAIN)]
        for kind, count in counts.items():
            mine = [entry for entry in table if entry.row == row and kinds[entry.shift] == kind]
            figures = [entry.ours.mean for entry in mine if entry.ours]
            found.append((f"{np.mean(figures):.2f}" if len(figures) == count else "", PLAIN))
        return tuple(found)

    header = ("method", *(f"{kind} ({count} cells)" for kind, count in counts.items()))
    return Grid(title, header, parts_of(table, line), tuple(notes(table, "arrival")))


def _kind(shift: str) -> str:
    kind = kind_of(shift)
    return shift if kind == "manipulation" else kind


def parts_of(here: Sequence[Entry | Overall], line: Callable[[str], Line]) -> tuple[tuple[str, tuple[Line, ...]], ...]:
    """The lines of a table, part by part."""
    found = []
    for part in PARTS:
        rows = dict.fromkeys(entry.row for entry in here if entry.part == part)
        if rows:
            found.append((part, tuple(line(row) for row in rows)))
    return tuple(found)


def _figure(entry: Entry | None) -> str:
    if entry is None or entry.ours is None:
        return "failed" if entry is not None and entry.errors else ""
    spread = f" ± {entry.ours.std:.1f}" if entry.ours.count > 1 else ""
    return f"{entry.ours.mean:.1f}{spread}"


def _beside(spec: Spec, rows: Sequence[Row]) -> dict[str, Cells]:
    """False alarms and finds, by their name and their place in the table."""
    return {
        name: {(entry.dataset, entry.shift, entry.row): entry for entry in entries(spec, rows, "arrival", name)}
        for name in BESIDE
    }


def arrival_page(results: Results) -> str:
    """The whole page, in Markdown; without rows of arrival the text alone."""
    spec = results.table("arrival", "arrival")
    if spec is None:
        return TEXT
    table = entries(spec, results.rows, "arrival")
    beside = _beside(spec, results.rows)
    lines = ["| arrival | degem | false alarms | found | best other detector | best simple one | shown examples |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for place in dict.fromkeys((entry.dataset, entry.shift) for entry in table):
        here = {entry.row: entry for entry in table if (entry.dataset, entry.shift) == place and entry.ours}
        if "degem" not in here:
            continue
        others = [entry for entry in here.values() if entry.part == PARTS[0] and not entry.row.startswith("degem")]
        shares = [_mean(beside[name].get((*place, "degem"))) for name in beside]
        simple = [entry for entry in here.values() if entry.part == PARTS[2]]
        cells = [" ".join(place), _mean(here["degem"]), *shares, _best(others), _best(simple)]
        lines.append(f"| {' | '.join([*cells, _mean(here.get(CEILING.name))])} |")
    return "\n".join([TEXT, *lines]) + "\n"


def _best(table: list[Entry]) -> str:
    if not table:
        return ""
    best = max(table, key=lambda entry: entry.ours.mean if entry.ours else 0.0)
    return f"{_mean(best)} {best.row}"


def _mean(entry: Entry | None) -> str:
    return "" if entry is None or entry.ours is None else f"{entry.ours.mean:.1f}"
