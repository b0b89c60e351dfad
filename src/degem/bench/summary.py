"""From the rows in a folder to the figures of a table: means over seeds with their spread, beside the paper's."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from degem.bench.paper import Cell, published
from degem.bench.protocols import ORACLE_LOOKS
from degem.bench.specs import (
    PROTOCOLS,
    SIMPLE,
    TRIVIAL,
    Spec,
    Variant,
    changed,
    read_spec,
    shifts_under,
    spec_names,
)
from degem.bench.store import NAME, Described, Row, Store
from degem.data.datasets import ALIASES, DATASETS
from degem.detectors import Detector
from degem.errors import DegemError
from degem.shifts.scenarios import SYNTHETIC

HOMOPHILIC = ("cora", "amazon-photo", "twitch", "arxiv", "arxiv-structural")
HETEROPHILIC = ("chameleon", "actor", "cornell")
CONTROLS = "trivial controls"
CEILING = Variant("ceiling (no detector)", "ceiling")  # rows of degem bench ceiling, which has seen OOD examples
PARTS = ("without OOD exposure", "with OOD exposure", "simple detectors", CONTROLS, "upper mark")
LOWER_IS_BETTER = ("fpr95", "false_alarm")


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Arguments:
        mean: The mean.
        std: The standard deviation over seeds, NaN for one.
        low: The lower end of the 95 % interval of the mean (Student's t), NaN for one seed.
        high: The upper end.
        count: The number of seeds.
    """

    mean: float
    std: float
    low: float
    high: float
    count: int


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of some values, with a 95 % interval.

    Example:
        >>> estimate([1.0, 2.0, 3.0]).mean
        2.0
    """
    count, mean = len(values), float(np.mean(values))
    if count < 2:
        return Estimate(mean, math.nan, math.nan, math.nan, count)
    std = float(np.std(values, ddof=1))
    half = float(stdtrit(count - 1, 0.975)) * std / math.sqrt(count)
    return Estimate(mean, std, mean - half, mean + half, count)


@dataclass(frozen=True)
class Entry:
    """One cell of a table.

    Arguments:
        dataset: The dataset.
        shift: The shift.
        label_rate: The share of training labels.
        row: The variant's name.
        part: Which part of the table the row stands in, one of ``PARTS``.
        ours: Our estimate, None where every seed failed or none ran.
        published: What the paper printed, NaN where it printed nothing.
        rank: 1 for the best of its part, 2 for the second best, else 0.
        errors: What failed.
        unseen: Whether its training has no steps for the oracle to look at: then its row is the finished model's.
    """

    dataset: str
    shift: str
    label_rate: float
    row: str
    part: str
    ours: Estimate | None
    published: float
    rank: int
    errors: tuple[str, ...]
    unseen: bool = False

    @property
    def place(self) -> str:
        """The dataset and the shift, with the share of labels where not all are kept."""
        rate = "" if self.label_rate == 1 else f", {self.label_rate:.0%} labels"
        return f"{self.dataset} {self.shift}{rate}"

    @property
    def difference(self) -> float:
        """Ours minus the paper's."""
        return self.ours.mean - self.published if self.ours else math.nan


Place = tuple[str, str, float]
Values = dict[tuple[str, str], dict[Place, dict[int, Row]]]


def part_of(method: str) -> str:
    """Which part of a table a method stands in."""
    if method in TRIVIAL:
        return CONTROLS
    if method in SIMPLE:
        return PARTS[2]
    if method == CEILING.method:
        return PARTS[4]
    kind = Detector.registry.get(method)
    return PARTS[1] if kind is not None and kind.needs_exposure else PARTS[0]


def collected(rows: Iterable[Row], protocol: str) -> Values:
    """Rows of one protocol by method and settings, by place, by seed; a later good row replaces an earlier one.

    A mean over seeds is one of one thing: only rows with the version and all the parameters of the newest row of their
    method, settings and place are kept, so that rows made before a default changed do not mix with those made after.
    """
    placed = [(_cell_of(row), row) for row in rows if row.protocol == protocol]
    newest = {cell: (row.version, row.parameters) for cell, row in placed}
    found: Values = defaultdict(lambda: defaultdict(dict))
    for cell, row in placed:
        seeds = found[cell[0]][cell[1]]
        current = (row.version, row.parameters) == newest[cell]
        if current and (row.seed not in seeds or not row.error or seeds[row.seed].error):
            seeds[row.seed] = row
    return found


def _cell_of(row: Row) -> tuple[tuple[str, str], Place]:
    settings, label_rate = _read(row.parameters)
    return (row.method, settings), (row.dataset, row.shift, label_rate)


@cache
def _read(parameters: str) -> tuple[str, float]:
    """What was set, and the share of labels: many rows have the same parameters."""
    described = Described.model_validate_json(parameters)
    return json.dumps(described.set, sort_keys=True), described.label_rate


def seeds_of(values: Values, variant: Variant, place: Place) -> dict[int, Row]:
    """The rows of a variant at a place, by seed."""
    key = (variant.method, json.dumps(changed(variant), sort_keys=True))
    return values[key][place] if key in values else {}


def entries(spec: Spec, rows: Iterable[Row], protocol: str, metric: str = "auroc") -> list[Entry]:
    """The cells of a table, those without a row left out."""
    values = collected(rows, protocol)
    found: list[Entry] = []
    variants = (*spec.variants, CEILING) if protocol == "arrival" else spec.variants
    for place in places(spec, values, protocol):
        column = [(variant, seeds_of(values, variant, place)) for variant in variants]
        column = _paired([(variant, seeds) for variant, seeds in column if seeds], len(spec.seeds))
        means = {variant.name: _estimate(seeds, metric) for variant, seeds in column}
        ranks = _ranks({variant.name: part_of(variant.method) for variant, _ in column}, means, metric)
        for variant, seeds in column:
            dataset, shift, rate = place
            cell = Cell(spec.published, dataset, shift, variant.name, rate)
            found.append(
                Entry(
                    *(dataset, shift, rate, variant.name, part_of(variant.method), means[variant.name]),
                    published=published().get(cell, {}).get(metric, math.nan),
                    rank=ranks.get(variant.name, 0),
                    errors=tuple(sorted({row.error for row in seeds.values() if row.error})),
                    unseen=protocol == "oracle"
                    and variant.method == "degem",  # it cannot be scored before its last step
                )
            )
    return found


def _paired(column: Sequence[tuple[Variant, dict[int, Row]]], wanted: int) -> list[tuple[Variant, dict[int, Row]]]:
    """The rows of a column on the seeds they share, once these are as many as the table asks for.

    Splits differ from seed to seed, often by more than rows do: a row with more seeds would stand beside other splits.
    """
    shared = set.intersection(*(set(seeds) for _, seeds in column)) if column else set()
    if len(shared) < wanted:
        return list(column)
    return [(variant, {seed: row for seed, row in seeds.items() if seed in shared}) for variant, seeds in column]


def places(spec: Spec, values: Values, protocol: str) -> list[Place]:
    """The columns of a table: those of the spec, and datasets that rows of its methods were made for besides."""
    datasets = list(spec.datasets)
    if spec.name in ("main", "arrival"):
        asked = {dataset for by_place in values.values() for dataset, _, _ in by_place}
        datasets += sorted(d for d in asked - set(datasets) if not d.startswith((SYNTHETIC, "arxiv-structural")))
    shifts = (
        (dataset, shift)
        for dataset in datasets
        for shift in shifts_under(protocol, dataset)
        if spec.shifts is None or shift in spec.shifts
    )
    return [(dataset, shift, rate) for rate, (dataset, shift) in itertools.product(spec.label_rates, shifts)]


def _estimate(seeds: dict[int, Row], metric: str) -> Estimate | None:
    good = [getattr(row, metric) for row in seeds.values() if not row.error]
    return estimate(good) if good and not any(math.isnan(value) for value in good) else None


def _ranks(parts: dict[str, str], means: dict[str, Estimate | None], metric: str) -> dict[str, int]:
    """First and second of each part but the trivial one; equal to two decimals is equal."""
    ranks: dict[str, int] = {}
    for part in PARTS[:2]:
        figures = {name: round(mean.mean, 2) for name, mean in means.items() if mean and parts[name] == part}
        order = sorted(set(figures.values()), reverse=metric not in LOWER_IS_BETTER)[:2]
        ranks |= {name: order.index(figure) + 1 for name, figure in figures.items() if figure in order}
    return ranks


@dataclass(frozen=True)
class Overall:
    """A method's mean over a group of places.

    Arguments:
        row: The method.
        part: Its part of the table.
        group: What the places have in common: ``homophilic`` or ``heterophilic`` graphs, or a kind of shift.
        ours: Our mean over places, NaN where one is lacking, or means would not compare.
        published: The paper's mean over the same places, NaN where it lacks one.
        count: The number of places.
    """

    row: str
    part: str
    group: str
    ours: float
    published: float
    count: int


def overall(table: Sequence[Entry]) -> list[Overall]:
    """Means over the places of homophilic and of heterophilic graphs; only methods that have every place."""
    groups = (("homophilic", HOMOPHILIC), ("heterophilic", HETEROPHILIC))
    found = means_over({name: [e for e in table if e.dataset in datasets] for name, datasets in groups})
    return [one for one in found if not math.isnan(one.ours)]


def means_over(groups: Mapping[str, Sequence[Entry]]) -> list[Overall]:
    """The mean of each row over the places of each group of entries."""
    found = []
    for group, here in groups.items():
        count = len({(entry.dataset, entry.shift) for entry in here})
        for row in dict.fromkeys(entry.row for entry in here):
            mine = [entry for entry in here if entry.row == row]
            figures = [entry.ours.mean for entry in mine if entry.ours]
            ours = float(np.mean(figures)) if len(figures) == count else math.nan
            published = float(np.mean([entry.published for entry in mine]))
            found.append(Overall(row, mine[0].part, group, ours, published, count))
    return found


def notes(table: Sequence[Entry], protocol: str) -> list[str]:
    """What a reader must know before comparing the columns."""
    found = [f"Protocol {protocol}; published figures are the paper's: best epoch on the test nodes, one run."]
    if protocol == "arrival":
        found = ["Protocol arrival: new ID nodes against OOD nodes, both absent at fitting."]
        if any(entry.row == CEILING.name for entry in table):
            found.append(f"{CEILING.name}: boosted trees trained with OOD examples of the same kind.")
    if protocol == "oracle":
        found.append(f"Ours: best of up to {ORACLE_LOOKS} looks at the test nodes while training.")
        rows = dict.fromkeys(entry.row for entry in table)
        if "residualflow" in rows:
            found.append("residualflow: looks while its flow trains.")
        unseen = [row for row in rows if any(entry.unseen for entry in table if entry.row == row)]
        if unseen:
            found.append(f"{', '.join(unseen)}: no looks, the finished model: it trains in stages.")
    for dataset in dict.fromkeys(entry.dataset for entry in table):
        known = DATASETS.get(ALIASES.get(dataset, dataset))
        if known is not None and known.note:
            found.append(f"{dataset}: {known.note}.")
    if any(entry.row in ("odin", "mahalanobis") for entry in table):
        found.append("odin, mahalanobis: the paper's scores have the sign reversed; ours do not.")
    counts = {entry.ours.count for entry in table if entry.ours}
    if counts == {1}:
        found.append("One seed: no standard deviation, no interval.")
    elif counts:
        spread = str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
        found.append(f"Mean ± standard deviation over {spread} seeds, [95 % interval of the mean].")
    return found


@dataclass(frozen=True)
class Results:
    """Rows, and the tables (never of mixed protocols) that have any.

    Arguments:
        rows: Every row.
        protocols: The protocols there are rows of.
        tables: Tables with at least one row, each with its protocol.
    """

    rows: tuple[Row, ...]
    protocols: tuple[str, ...]
    tables: tuple[tuple[Spec, str], ...]

    def table(self, name: str, protocol: str = "strict") -> Spec | None:
        """The table of that name and protocol, if it has rows."""
        return next((spec for spec, kind in self.tables if (spec.name, kind) == (name, protocol)), None)


def tables_in(folder: Path) -> Results:
    """Read the results of ``degem bench run --out folder``."""
    rows = tuple(Store(folder).rows())
    if not rows:
        raise DegemError(f"{folder} has no {NAME} with rows: degem bench run TABLE --out {folder} makes one")
    protocols = tuple(protocol for protocol in PROTOCOLS if any(row.protocol == protocol for row in rows))
    order = sorted(spec_names(), key=lambda name: (name != "main", name))
    own = sorted(str(path) for path in folder.glob("*.toml"))  # tables of the user's, kept beside their rows
    specs = [read_spec(name) for name in (*order, *own)]
    tables = tuple((spec, protocol) for protocol in protocols for spec in specs if _filled(spec, rows, protocol))
    return Results(rows, protocols, tables)


def _filled(spec: Spec, rows: tuple[Row, ...], protocol: str) -> bool:
    """Whether a table has rows of its own: the trivial controls, which stand in every one, make only the main table."""
    if (spec.protocol == "arrival") != (protocol == "arrival"):
        return False  # cells of the same name hold other nodes there
    table = entries(spec, rows, protocol)
    return any(spec.name in ("main", "arrival") or entry.part != CONTROLS for entry in table)
