"""Two methods on the same seeds; and the first table of the results, the default beside the others nearest to it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from degem.bench.formats import PLAIN, Grid
from degem.bench.store import Described, Row
from degem.bench.summary import PARTS, Estimate, collected, estimate, part_of
from degem.shifts.scenarios import SYNTHETIC, kind_of

OURS = "degem"
SHOWN, LEVEL = 5, 0.05
OTHERS = (PARTS[0], PARTS[2])
NATURAL = ("domain", "fraud", "time")


@dataclass(frozen=True)
class Comparison:
    """Two methods on the same seeds.

    Arguments:
        place: The dataset and the shift, or what the comparison is over.
        first: The mean of A.
        second: The mean of B.
        difference: A − B over paired seeds (or places).
        p_value: Of the paired test, NaN where there are too few pairs.
    """

    place: str
    first: float
    second: float
    difference: Estimate
    p_value: float


def compare(rows: Iterable[Row], protocol: str, first: str, second: str, metric: str = "auroc") -> list[Comparison]:
    """A and B at their defaults, place by place (paired t-test over seeds), then over all places.

    Seeds of one place are not independent evidence on other data, so the overall test is Wilcoxon's signed-rank test on
    the mean difference of each place.
    """
    values = collected(rows, protocol)
    sides = [values.get((method, "{}"), {}) for method in (first, second)]
    found: list[Comparison] = []
    for place in sorted(sides[0].keys() & sides[1].keys()):
        a, b = (_good(side[place], metric) for side in sides)
        seeds = sorted(a.keys() & b.keys())
        if seeds:
            pairs = [a[seed] - b[seed] for seed in seeds]
            dataset, shift, rate = place
            label = f"{dataset} {shift}" + ("" if rate == 1 else f" {rate:.0%} labels")
            ours, theirs = (float(np.mean([side[seed] for seed in seeds])) for side in (a, b))
            found.append(Comparison(label, ours, theirs, estimate(pairs), _paired_t(pairs)))
    if len(found) > 1:
        gaps = [comparison.difference.mean for comparison in found]
        p_value = float(stats.wilcoxon(gaps).pvalue) if any(gaps) else 1.0
        ours, theirs = (float(np.mean([getattr(one, side) for one in found])) for side in ("first", "second"))
        found.append(Comparison("all places (Wilcoxon)", ours, theirs, estimate(gaps), p_value))
    return found


def _good(seeds: dict[int, Row], metric: str) -> dict[int, float]:
    figures = {seed: getattr(row, metric) for seed, row in seeds.items() if not row.error}
    return {seed: figure for seed, figure in figures.items() if not math.isnan(figure)}


def _paired_t(pairs: Sequence[float]) -> float:
    if len(pairs) < 2:
        return math.nan
    if np.ptp(pairs) == 0:
        return 1.0 if pairs[0] == 0 else 0.0
    return float(stats.ttest_1samp(pairs, 0.0).pvalue)


# Cells that are compared together: what they are called, the protocol of their rows, and which of these belong to them.
FIELDS: tuple[tuple[str, str, Callable[[Row], bool]], ...] = (
    ("arrival, made shifts", "arrival", lambda row: kind_of(row.shift) not in NATURAL),
    ("arrival, natural shifts", "arrival", lambda row: kind_of(row.shift) in NATURAL),
    ("whole graph", "strict", lambda row: not row.dataset.startswith(SYNTHETIC)),
)


def standings_grid(rows: Sequence[Row]) -> Grid:
    """For each field the other detectors that come nearest to the default, or are ahead of it.

    Methods that see OOD nodes are left out, and those that share fewer than half of the default's cells.

    Arguments:
        rows: Stored rows, of any table and protocol.
    """
    plain = [row for row in rows if not row.error and Described.model_validate_json(row.parameters).label_rate == 1]
    parts = []
    for name, protocol, belongs in FIELDS:
        lines = _lines([row for row in plain if row.protocol == protocol and belongs(row)], protocol)
        if lines:
            parts.append((name, tuple(tuple((text, PLAIN) for text in line) for line in lines)))
    header = ("the other", "cells", "its AUROC", "degem there", "degem wins", "loses", "p", "seconds", "MiB")
    notes = (
        f"The {SHOWN} detectors without OOD examples whose mean AUROC is highest beside degem's on shared cells.",
        f"Wins and losses by mean over seeds; in brackets those whose paired t-test has p < {LEVEL}.",
        "p: Wilcoxon's signed-rank test on the mean difference of each cell.",
        "Seconds of fitting and scoring, and peak memory, the other's / degem's: the least over seeds (rows were made "
        "beside other work), its median over cells.",
    )
    return Grid("degem beside the others, AUROC ↑", header, tuple(parts), notes)


def _lines(rows: list[Row], protocol: str) -> list[tuple[str, ...]]:
    """One line a method, the hardest to beat first."""
    methods = sorted({row.method for row in rows if part_of(row.method) in OTHERS and not row.method.startswith(OURS)})
    cells = len({(row.dataset, row.shift) for row in rows if row.method == OURS})
    found = []
    for method in methods:
        compared = compare(rows, protocol, OURS, method)
        places, overall = compared[:-1], compared[-1:]
        if not places or 2 * len(places) < cells:
            continue
        figures = [f"{overall[0].second:.1f}", f"{overall[0].first:.1f}", _count(places, 1), _count(places, -1)]
        figures.append(f"{overall[0].p_value:.2g}")
        costs = [_costs(rows, method, cost) for cost in (_seconds, _memory)]
        found.append((overall[0].difference.mean, (method, str(len(places)), *figures, *costs)))
    return [line for _, line in sorted(found)[:SHOWN]]


def _count(places: list[Comparison], sign: int) -> str:
    """How many differences have this sign, and how many of those are beyond chance."""
    signed = [place for place in places if sign * place.difference.mean > 0]
    return f"{len(signed)} ({sum(place.p_value < LEVEL for place in signed)})"


def _costs(rows: list[Row], method: str, cost: Callable[[Row], float]) -> str:
    """What a method and the default cost on the cells that both have: the least over seeds, its median over cells."""
    sides = []
    for one in (method, OURS):
        cells: dict[tuple[str, str], list[float]] = defaultdict(list)
        for row in rows:
            if row.method == one:
                cells[row.dataset, row.shift].append(cost(row))
        sides.append(cells)
    shared = sides[0].keys() & sides[1].keys()
    return " / ".join(f"{np.median([min(side[cell]) for cell in shared]):,.0f}" for side in sides)


def _seconds(row: Row) -> float:
    return row.fit_seconds + row.score_seconds


def _memory(row: Row) -> float:
    return row.peak_mib
