"""The tables of a benchmark: ours beside the published figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from degem.bench.comparison import Comparison
from degem.bench.formats import PLAIN, Grid
from degem.bench.specs import Spec
from degem.bench.store import Row, csv_line
from degem.bench.summary import PARTS, Entry, Overall, entries, means_over, notes, overall
from degem.shifts.scenarios import kind_of

BESIDE = {"false_alarm": "false alarms", "found": "found"}
LEGEND = "False alarms and found: share of new ID and of OOD nodes with p ≤ 0.05, in percent; 5 % are asked for."
Line = tuple[tuple[str, int], ...]
Cells = dict[tuple[str, str, str], Entry]
METRIC_NAMES = {"auroc": "AUROC ↑", "aupr": "AUPR ↑", "fpr95": "FPR95 ↓", "acc": "ID accuracy ↑"}


def grids(
    spec: Spec, rows: Sequence[Row], protocol: str, metric: str = "auroc", *, by_shift: bool = False
) -> list[Grid]:
    """The tables of a spec under one protocol: one a dataset and label rate, and means over kinds of graphs or shifts.

    Arguments:
        spec: The table.
        rows: Stored rows, of any table and protocol.
        protocol: The protocol; a table never mixes them.
        metric: ``auroc``, ``aupr``, ``fpr95`` or ``acc``.
        by_shift: One narrow table a shift instead of one wide table a dataset.
    """
    table = entries(spec, rows, protocol, metric)
    beside = beside_arrival(spec, rows) if protocol == "arrival" else None
    what = METRIC_NAMES[metric] + ("" if beside else f", protocol {protocol}")
    found = []
    for dataset, rate in dict.fromkeys((entry.dataset, entry.label_rate) for entry in table):
        here = [entry for entry in table if (entry.dataset, entry.label_rate) == (dataset, rate)]
        labels = "" if rate == 1 else f", {rate:.0%} of training labels"
        shifts = list(dict.fromkeys(entry.shift for entry in here))
        for columns in [[shift] for shift in shifts] if by_shift else [shifts]:
            chosen = [entry for entry in here if entry.shift in columns]
            found.append(_dataset_grid(f"{spec.title}: {dataset}{labels}, {what}", chosen, protocol, beside))
    if beside is not None:
        means = _means_by_shift(table) if table else []
    else:
        means = overall(table) if spec.label_rates == (1.0,) else []
    if means:
        title = f"{spec.title}: means{' by kind of shift' if beside else ''}, {what}"
        found.append(_means_grid(title, means, tuple(notes(table, protocol)), published=beside is None))
    return found


def beside_arrival(spec: Spec, rows: Sequence[Row]) -> dict[str, Cells]:
    """False alarms and finds under arrival, by their name and their place in the table."""
    return {
        name: {(entry.dataset, entry.shift, entry.row): entry for entry in entries(spec, rows, "arrival", name)}
        for name in BESIDE
    }


def _dataset_grid(title: str, here: list[Entry], protocol: str, beside: dict[str, Cells] | None) -> Grid:
    """A table with three columns a shift: ours, and what stands beside it."""
    header = ["method"]
    shifts = dict.fromkeys(entry.shift for entry in here)
    for shift in shifts:
        header += [shift, *(BESIDE.values() if beside else ("paper", "Δ"))]
    cells = {(entry.row, entry.shift): entry for entry in here}

    def of(row: str, shift: str) -> list[tuple[str, int]]:
        entry = cells.get((row, shift))
        if beside is None:
            return _cells(entry)
        shares = [_short(side.get((here[0].dataset, shift, row))) for side in beside.values()]
        return [(_short(entry), entry.rank if entry else PLAIN), *((share, PLAIN) for share in shares)]

    def line(row: str) -> Line:
        return ((row, PLAIN), *(cell for shift in shifts for cell in of(row, shift)))

    failures = sorted({f"{entry.row}: {error}" for entry in here for error in entry.errors})
    below = [*notes(here, protocol), *([LEGEND] if beside else []), *(f"Failed: {text}" for text in failures)]
    return Grid(title, tuple(header), _parts(here, line), tuple(below))


def _parts(here: Sequence[Entry | Overall], line: Callable[[str], Line]) -> tuple[tuple[str, tuple[Line, ...]], ...]:
    """The lines of a table, part by part."""
    rows = {part: dict.fromkeys(entry.row for entry in here if entry.part == part) for part in PARTS}
    return tuple((part, tuple(map(line, members))) for part, members in rows.items() if members)


def _cells(entry: Entry | None) -> list[tuple[str, int]]:
    if entry is None:
        return [("", PLAIN)] * 3
    if entry.ours is None:
        return [("failed" if entry.errors else "–", PLAIN), (_number(entry.published), PLAIN), ("", PLAIN)]
    ours = entry.ours
    text = f"{ours.mean:.2f}"
    if ours.count > 1:
        text += f" ± {ours.std:.2f} [{max(ours.low, 0):.1f}, {min(ours.high, 100):.1f}]"
    return [(text, entry.rank), (_number(entry.published), PLAIN), (_number(entry.difference, "+"), PLAIN)]


def _short(entry: Entry | None) -> str:
    if entry is None or entry.ours is None:
        return "failed" if entry is not None and entry.errors else ""
    spread = f" ± {entry.ours.std:.1f}" if entry.ours.count > 1 else ""
    return f"{entry.ours.mean:.1f}{spread}"


def _number(value: float, sign: str = "") -> str:
    return "" if math.isnan(value) else f"{value:{sign}.2f}"


def _means_by_shift(table: list[Entry]) -> list[Overall]:
    """Means over the cells of a kind of shift."""
    groups: dict[str, list[Entry]] = {}
    for entry in table:
        kind = kind_of(entry.shift)
        groups.setdefault(entry.shift if kind == "manipulation" else kind, []).append(entry)
    return means_over(groups)


def _means_grid(title: str, means: list[Overall], below: tuple[str, ...], *, published: bool) -> Grid:
    counts = {one.group: one.count for one in means}
    header = ["method"]
    for kind, count in counts.items():
        header += [f"{kind} ({count} cells)", *(("paper", "Δ") if published else ())]
    by_kind = {(one.row, one.group): one for one in means}

    def texts(one: Overall | None) -> list[str]:
        figures = ["", "", ""]
        if one is not None:
            figures = [_number(one.ours), _number(one.published), _number(one.ours - one.published, "+")]
        return figures if published else figures[:1]

    def line(row: str) -> Line:
        return ((row, PLAIN), *((text, PLAIN) for kind in counts for text in texts(by_kind.get((row, kind)))))

    return Grid(title, tuple(header), _parts(means, line), below)


def comparison_grid(found: Sequence[Comparison], first: str, second: str, protocol: str, metric: str) -> Grid:
    """The table of ``--compare A B``."""
    lines = tuple(
        tuple((text, PLAIN) for text in (one.place, _number(one.first), _number(one.second), *_tested(one)))
        for one in found
    )
    header = ("place", first, second, "difference", "95 % interval", "p", "pairs")
    title = f"{first} − {second}: {METRIC_NAMES[metric]}, protocol {protocol}"
    below = ("Paired t-test over seeds in each place; Wilcoxon signed-rank over the places' mean differences.",)
    return Grid(title, header, (("", lines),), below)


def comparison_csv(found: Mapping[str, Sequence[Comparison]], first: str, second: str, metric: str) -> str:
    """Comparisons by protocol, one line a place, for other programs."""
    lines = [csv_line(["protocol", "metric", "place", first, second, "difference", "low95", "high95", "p", "pairs"])]
    for protocol, here in found.items():
        for one in here:
            gap = one.difference
            figures = [_cell(figure) for figure in (one.first, one.second, gap.mean, gap.low, gap.high)]
            lines.append(csv_line([protocol, metric, one.place, *figures, _p_value(one), gap.count]))
    return "".join(lines)


def _tested(one: Comparison) -> tuple[str, ...]:
    gap = one.difference
    interval = "" if gap.count < 2 else f"[{gap.low:+.2f}, {gap.high:+.2f}]"
    return f"{gap.mean:+.2f}", interval, _p_value(one), str(gap.count)


def _p_value(one: Comparison) -> str:
    return "" if math.isnan(one.p_value) else f"{one.p_value:.2g}"


def csv_text(spec: Spec, rows: Sequence[Row], protocol: str) -> str:
    """Every cell and metric of a table, one line each, for other programs."""
    lines = []
    for metric in (*METRIC_NAMES, *(BESIDE if protocol == "arrival" else ())):
        for entry in entries(spec, rows, protocol, metric):
            ours = entry.ours
            numbers = ["", "", "", "", ""] if ours is None else [ours.mean, ours.std, ours.low, ours.high, ours.count]
            place = (spec.name, protocol, entry.dataset, entry.shift, entry.label_rate, entry.row, entry.part, metric)
            figures = [_cell(number) for number in (*numbers, entry.published, entry.difference)]
            told = (entry.rank or "", "; ".join(notes([entry], protocol)), "; ".join(entry.errors))
            lines.append(csv_line([*place, *figures, *told]))
    return "".join(lines)


CSV_HEADER = (
    "table,protocol,dataset,shift,label_rate,row,part,metric,"
    "mean,std,low95,high95,seeds,published,difference,rank,notes,errors"
)


def _cell(value: float | int | str) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4f}"
    return str(value)
