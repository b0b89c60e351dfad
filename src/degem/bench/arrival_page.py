"""The page of arrival: what is promised, when it fails, and how far it held in the benchmark, from the rows."""

from __future__ import annotations

from pathlib import Path

from degem.bench.results import Results
from degem.bench.summary import CEILING, PARTS, Entry, entries

TEXT = Path(__file__).with_name("arrival.md").read_text(encoding="utf-8")


def arrival_page(results: Results) -> str:
    """The whole page, in Markdown; without rows of arrival the text alone."""
    spec = results.table("arrival", "arrival")
    if spec is None:
        return TEXT
    table = entries(spec, results.rows, "arrival")
    beside = {
        name: {(entry.dataset, entry.shift, entry.row): entry for entry in entries(spec, results.rows, "arrival", name)}
        for name in ("false_alarm", "found")
    }
    lines = ["| arrival | degem | false alarms | found | best other detector | best simple one | shown examples |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for place in dict.fromkeys((entry.dataset, entry.shift) for entry in table):
        here = {entry.row: entry for entry in table if (entry.dataset, entry.shift) == place and entry.ours}
        if "degem" not in here:
            continue
        others = [entry for entry in here.values() if entry.part == PARTS[0] and not entry.row.startswith("degem")]
        shares = [_figure(beside[name].get((*place, "degem"))) for name in beside]
        simple = [entry for entry in here.values() if entry.part == PARTS[2]]
        cells = [" ".join(place), _figure(here["degem"]), *shares, _best(others), _best(simple)]
        lines.append(f"| {' | '.join([*cells, _figure(here.get(CEILING.name))])} |")
    return "\n".join([TEXT, *lines]) + "\n"


def _best(table: list[Entry]) -> str:
    if not table:
        return ""
    best = max(table, key=lambda entry: entry.ours.mean if entry.ours else 0.0)
    return f"{_figure(best)} {best.row}"


def _figure(entry: Entry | None) -> str:
    return "" if entry is None or entry.ours is None else f"{entry.ours.mean:.1f}"
