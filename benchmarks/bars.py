"""What speed and memory are held to, and whether the rows of ``benchmarks/results`` meet it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import measure
import pandas as pd
import scale
import speed

OF_THE_PAPER = ("cora", "chameleon", "actor")
IN_FULL = "transcription"  # the baseline's name where all of its epochs were run
NOT_MEASURED = "not measured"
NOISE = 2.776  # Student's t at 5 %, both sides, for the differences of five seeds


@dataclass(frozen=True)
class Bar:
    """A limit and what was measured.

    Arguments:
        what: What is held to the limit.
        limit: The limit.
        values: What was measured, by where (nothing where there is but one place); the worst of them counts.
        unit: What the figures are in.
        at_least: Whether the limit is the least allowed; else it is the most.
        needed: Where it must be measured: the first words of the places.
        reservation: What keeps the figures from meeting the bar in full, if anything.
    """

    what: str
    limit: float
    values: dict[str, float]
    unit: str = "×"
    at_least: bool = False
    needed: tuple[str, ...] = ()
    reservation: str = ""

    @property
    def held_to(self) -> str:
        """The limit as text."""
        return f"{'≥' if self.at_least else '≤'} {self.limit:,.4g}{self.unit}"

    @property
    def figure(self) -> str:
        """The worst figure and where it was measured."""
        if not self.values:
            return ""
        place = (min if self.at_least else max)(self.values, key=self.values.__getitem__)
        return f"{self.values[place]:,.4g}{self.unit}" + (f" ({place})" if place else "")

    @property
    def met(self) -> str:
        """Yes, no, or what is still to be measured."""
        if not self.values:
            return NOT_MEASURED
        missed = sum(value < self.limit if self.at_least else value > self.limit for value in self.values.values())
        absent = [name for name in self.needed if name not in {place.split()[0] for place in self.values}]
        doubts = [*filter(None, [self.reservation]), *(f"{name} {NOT_MEASURED}" for name in absent)]
        verdict = "**no**" if missed else "so far" if doubts else "yes"
        if missed and len(self.values) > 1:
            verdict += f", in {missed} of {len(self.values)}"
        return "; ".join([verdict, *doubts])


def table(speeds: pd.DataFrame, rivals: pd.DataFrame, batches: pd.DataFrame, sizes: pd.DataFrame) -> str:
    """Every bar as a Markdown table.

    Arguments:
        speeds: The rows of ``speed.csv``.
        rivals: The rows of ``fit-times.csv``.
        batches: The rows of ``batches.csv``.
        sizes: The rows of ``scale.csv``.
    """
    found = [*_fits(speeds, rivals), *_parts(speeds), _agreement(batches), *_sizes(sizes), *_growth(sizes)]
    rows = [{"bar": bar.what, "held to": bar.held_to, "measured": bar.figure, "met": bar.met} for bar in found]
    return measure.markdown_table(pd.DataFrame(rows)).rstrip()


def _fits(speeds: pd.DataFrame, rivals: pd.DataFrame) -> list[Bar]:
    fits = _where(speeds, what="fit")
    fits = fits[fits["dataset"].isin(OF_THE_PAPER)] if len(fits) else fits
    short = "" if fits.empty or (fits["baseline"] == IN_FULL).all() else "the transcription was not run in full"
    place = ["dataset", "shift"]
    return [
        Bar(
            "speed of a fit, against the transcription",
            30,
            _values(fits, "speedup", place),
            at_least=True,
            needed=OF_THE_PAPER,
            reservation=short,
        ),
        Bar(
            "strict AUROC minus the transcription's, in points",
            0,
            _values(fits, "auroc", place, minus="baseline_auroc"),
            unit="",
            at_least=True,
            needed=OF_THE_PAPER,
            reservation=short,
        ),
        Bar(
            "peak memory of a fit, against the transcription",
            0.25,
            _values(fits, "peak_mib", place, over="baseline_peak_mib"),
            needed=OF_THE_PAPER,
        ),
        Bar(
            "time of a fit, against MSP's and GNNSafe's",
            2,
            _values(rivals, "ratio", ["dataset", "kind", "method"]),
            needed=speed.DATASETS,
        ),
    ]


def _parts(speeds: pd.DataFrame) -> list[Bar]:
    samples, hops, scores = (_where(speeds, what=what) for what in ("sample", "propagate", "score"))
    return [
        Bar("speed of Langevin sampling, against autograd", 5, _values(samples, "speedup", ["dataset"]), at_least=True),
        Bar(
            "time of propagation, against the fastest other kernel",
            1.3,
            _values(hops, "seconds", ["dataset"], over="baseline_seconds"),
        ),
        Bar(
            "time of scoring, against its bare products",
            1.5,
            _values(scores, "seconds", ["dataset"], over="baseline_seconds"),
        ),
    ]


def _agreement(batches: pd.DataFrame) -> Bar:
    """Differences in their standard errors; two that are equal on every seed have neither."""
    apart = batches.assign(apart=batches["difference"].abs()) if len(batches) else batches
    return Bar(
        "AUROC of mini-batches and of the whole graph, apart in standard errors",
        NOISE,
        _values(_where(apart, seeds=5), "apart", ["dataset", "shift"], over="standard_error"),
        unit="",
        needed=speed.DATASETS,
    )


def _sizes(sizes: pd.DataFrame) -> list[Bar]:
    arxiv = _where(sizes, graph="arxiv-structural")
    million, ten = (_where(sizes, graph="generated", nodes=nodes) for nodes in (10**6, 10**7))
    times = {
        name: float((row["fit_seconds"] + row["score_seconds"]).iloc[0])
        for name, row in {"1M": million, "10M": ten}.items()
        if len(row)
    }
    return [
        *_limits("arxiv-structural", arxiv, fit=300, score=20, peak=3),
        *_limits("1M nodes", million, fit=600, score=120, peak=6),
        Bar("10M nodes, peak memory", 10, _peaks(ten), " GiB"),
        Bar(
            "10M nodes, fit and score, against 1M",
            12,
            {"": times["10M"] / times["1M"]} if len(times) == 2 else {},
        ),
    ]


def _limits(name: str, row: pd.DataFrame, *, fit: float, score: float, peak: float) -> list[Bar]:
    """The bars of one graph: seconds and GiB."""
    return [
        Bar(f"{name}, fit", fit, _values(row, "fit_seconds", []), " s"),
        Bar(f"{name}, score", score, _values(row, "score_seconds", []), " s"),
        Bar(f"{name}, peak memory", peak, _peaks(row), " GiB"),
    ]


def _growth(sizes: pd.DataFrame) -> list[Bar]:
    rows = [{str(name): value for name, value in row.items()} for row in sizes.to_dict("records")]
    complete = {row["nodes"] for row in rows if row["graph"] == "generated"} >= set(scale.SIZES)
    return [
        Bar(
            f"exponent of {phase} time, 10k to 10M nodes",
            1.05,
            {"": scale.exponent(rows, phase)} if complete else {},
            unit="",
        )
        for phase in ("fit", "score")
    ]


def _where(rows: pd.DataFrame, **wanted: object) -> pd.DataFrame:
    """The rows that have these values."""
    for name, value in wanted.items():
        rows = rows[rows[name] == value] if len(rows) else rows
    return rows


def _peaks(row: pd.DataFrame) -> dict[str, float]:
    return {phase: peak / 1024 for phase in ("fit", "score") for peak in row.get(f"{phase}_peak_mib", [])}


def _values(
    rows: pd.DataFrame, name: str, place: list[str], *, over: str | None = None, minus: str | None = None
) -> dict[str, float]:
    """A column, or its ratio or difference with another, by place; without what was not measured."""
    found = {}
    for row in rows.to_dict("records"):
        value = float(row[name])
        if over and value:  # nothing is nothing over anything
            value /= float(row[over])
        elif minus:
            value -= float(row[minus])
        if not math.isnan(value):
            found[" ".join(str(row[column]) for column in place)] = value
    return found
