"""Two methods against each other, on the same seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from degem.bench.store import Row
from degem.bench.summary import Estimate, collected, estimate


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
