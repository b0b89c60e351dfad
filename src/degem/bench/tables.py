"""The tables of a benchmark: ours beside the published figure."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence

from degem.bench.arrival_tables import BESIDE, Line, arrival_grids, parts_of
from degem.bench.comparison import Comparison
from degem.bench.formats import PLAIN, Grid
from degem.bench.specs import Spec
from degem.bench.store import Row
from degem.bench.summary import Entry, Overall, entries, notes, overall

METRIC_NAMES = {"auroc": "AUROC ↑", "aupr": "AUPR ↑", "fpr95": "FPR95 ↓", "acc": "ID accuracy ↑"}


def grids(
    spec: Spec, rows: Sequence[Row], protocol: str, metric: str = "auroc", *, by_shift: bool = False
) -> list[Grid]:
    """The tables of a spec under one protocol: one a dataset and label rate, and the means over kinds of graphs.

    Arguments:
        spec: The table.
        rows: Stored rows, of any table and protocol.
        protocol: The protocol; a table never mixes them.
        metric: ``auroc``, ``aupr``, ``fpr95`` or ``acc``.
        by_shift: One narrow table a shift instead of one wide table a dataset.
    """
    if protocol == "arrival":
        return arrival_grids(spec, rows, metric, METRIC_NAMES[metric], by_shift=by_shift)
    table = entries(spec, rows, protocol, metric)
    found = []
    for dataset, rate in dict.fromkeys((entry.dataset, entry.label_rate) for entry in table):
        here = [entry for entry in table if (entry.dataset, entry.label_rate) == (dataset, rate)]
        for shifts in _columns(here, by_shift):
            found.append(_dataset_grid(spec, [entry for entry in here if entry.shift in shifts], protocol, metric))
    means = overall(table) if spec.label_rates == (1.0,) else []
    if means:
        found.append(_overall_grid(spec, means, protocol, metric, tuple(notes(table, protocol))))
    return found


def _columns(here: list[Entry], by_shift: bool) -> list[tuple[str, ...]]:
    shifts = tuple(dict.fromkeys(entry.shift for entry in here))
    return [(shift,) for shift in shifts] if by_shift else [shifts]


def _dataset_grid(spec: Spec, here: list[Entry], protocol: str, metric: str) -> Grid:
    dataset, rate = here[0].dataset, here[0].label_rate
    (shifts,) = _columns(here, by_shift=False)
    header = ["method"]
    for shift in shifts:
        header += [shift, "paper", "Δ"]
    cells = {(entry.row, entry.shift): entry for entry in here}

    def line(row: str) -> Line:
        return ((row, PLAIN), *(cell for shift in shifts for cell in _cells(cells.get((row, shift)))))

    labels = "" if rate == 1 else f", {rate:.0%} of training labels"
    title = f"{spec.title}: {dataset}{labels}, {METRIC_NAMES[metric]}, protocol {protocol}"
    failures = sorted({f"{entry.row}: {error}" for entry in here for error in entry.errors})
    below = (*notes(here, protocol), *(f"Failed: {text}" for text in failures))
    return Grid(title, tuple(header), parts_of(here, line), below)


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


def _number(value: float, sign: str = "") -> str:
    return "" if math.isnan(value) else f"{value:{sign}.2f}"


def _overall_grid(spec: Spec, means: list[Overall], protocol: str, metric: str, below: tuple[str, ...]) -> Grid:
    kinds = list(dict.fromkeys(one.graphs for one in means))
    header = ["method"]
    for kind in kinds:
        count = next(one.count for one in means if one.graphs == kind)
        header += [f"{kind} ({count} cells)", "paper", "Δ"]
    by_kind = {(one.row, one.graphs): one for one in means}

    def line(row: str) -> Line:
        return ((row, PLAIN), *((text, PLAIN) for kind in kinds for text in _overall_texts(by_kind.get((row, kind)))))

    title = f"{spec.title}: means, {METRIC_NAMES[metric]}, protocol {protocol}"
    return Grid(title, tuple(header), parts_of(means, line), below)


def _overall_texts(one: Overall | None) -> tuple[str, str, str]:
    if one is None:
        return "", "", ""
    return _number(one.ours), _number(one.published), _number(one.ours - one.published, "+")


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
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["protocol", "metric", "place", first, second, "difference", "low95", "high95", "p", "pairs"])
    for protocol, here in found.items():
        for one in here:
            gap = one.difference
            figures = [_cell(figure) for figure in (one.first, one.second, gap.mean, gap.low, gap.high)]
            writer.writerow([protocol, metric, one.place, *figures, _p_value(one), gap.count])
    return buffer.getvalue()


def _tested(one: Comparison) -> tuple[str, ...]:
    gap = one.difference
    interval = "" if gap.count < 2 else f"[{gap.low:+.2f}, {gap.high:+.2f}]"
    return f"{gap.mean:+.2f}", interval, _p_value(one), str(gap.count)


def _p_value(one: Comparison) -> str:
    return "" if math.isnan(one.p_value) else f"{one.p_value:.2g}"


def csv_text(spec: Spec, rows: Sequence[Row], protocol: str) -> str:
    """Every cell and metric of a table, one line each, for other programs."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for metric in (*METRIC_NAMES, *(BESIDE if protocol == "arrival" else ())):
        for entry in entries(spec, rows, protocol, metric):
            ours = entry.ours
            numbers = ["", "", "", "", ""] if ours is None else [ours.mean, ours.std, ours.low, ours.high, ours.count]
            writer.writerow(
                [spec.name, protocol, entry.dataset, entry.shift, entry.label_rate, entry.row, entry.part, metric]
                + [_cell(number) for number in (*numbers, entry.published, entry.difference)]
                + [str(entry.rank or ""), "; ".join(notes([entry], protocol)), "; ".join(entry.errors)]
            )
    return buffer.getvalue()


CSV_HEADER = (
    "table,protocol,dataset,shift,label_rate,row,part,metric,"
    "mean,std,low95,high95,seeds,published,difference,rank,notes,errors"
)


def _cell(value: float | int | str) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4f}"
    return str(value)
