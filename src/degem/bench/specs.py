"""Tables to run, as data: which methods, on which datasets and shifts, with how many seeds."""

from __future__ import annotations

import dataclasses
import itertools
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from degem import parameters
from degem.detectors import Detector
from degem.errors import DegemError, ParameterError
from degem.shifts.arrival_scenarios import FRAUD, arrivals_of
from degem.shifts.scenarios import kind_of, scenario_name, shifts_of

FOLDER = Path(__file__).parent / "specs"
PROTOCOLS = ("arrival", "strict", "oracle")
TRIVIAL = ("degree", "nonzeros", "norm")
SIMPLE = ("iforest", "iforest-1hop", "ecod", "ecod-1hop", "feature-knn", "feature-knn-1hop")

# What a TOML table may hold: for each key its type, and what to tell somebody who wrote another.
Keys = Mapping[str, tuple[Any, str]]
TABLE: Keys = {
    "title": (str, "a text"),
    "published": (str, "the name of a table of the paper"),
    "protocol": (Literal["strict", "oracle", "arrival"], "strict, oracle or arrival"),
    "methods": (list[str], 'a list such as ["degem", "msp"], or ["*"] for all'),
    "variants": (list[dict[str, Any]], "tables headed [[variants]]"),
    "datasets": (list[str], 'a list such as ["cora", "actor"]'),
    "seeds": (int | str, 'how many (5 is 0 to 4), or a text such as "11,12"'),
    "shifts": (list[str], 'a list such as ["structure", "label"]'),
    "label_rates": (
        Annotated[list[Annotated[float, Field(gt=0, le=1)]], Field(min_length=1)],
        "a list of shares of training labels, each above 0 and at most 1, such as [0.1, 1.0]",
    ),
}
VARIANT: Keys = {
    "name": (str, "a text"),
    "method": (str, "the name of a method"),
    "set": (dict[str, Any], "parameters and their values, such as {num_hops = 3}"),
}


@dataclass(frozen=True)
class Variant:
    """One row of a table.

    Arguments:
        name: What the row is called; the method's name unless the table compares settings of one method.
        method: A registered detector.
        changes: Parameters that differ from the method's defaults.
    """

    name: str
    method: str
    changes: Mapping[str, Any] = field(default_factory=dict)

    def detector(self, seed: int = 0) -> Detector:
        """The detector this row stands for."""
        kind = Detector.registry[self.method]
        return kind(seed=seed).set_params(**parameters.from_json(kind, dict(self.changes)))


@dataclass(frozen=True)
class Spec:
    """One table.

    Arguments:
        name: Its name on the command line.
        title: Its title.
        published: The paper's table that it stands beside.
        variants: Its rows.
        datasets: Its datasets.
        seeds: Its seeds.
        shifts: Its shifts; None for every shift that makes sense.
        label_rates: Shares of training labels.
        protocol: The protocol it is run under unless another one is asked for.
    """

    name: str
    title: str
    published: str
    variants: tuple[Variant, ...]
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    shifts: tuple[str, ...] | None = None
    label_rates: tuple[float, ...] = (1.0,)
    protocol: str = "strict"


@dataclass(frozen=True)
class Task:
    """One row of results to make: see :class:`~degem.bench.store.Row` for what comes of it."""

    variant: Variant
    dataset: str
    shift: str
    seed: int
    protocol: str
    label_rate: float

    @property
    def parameters(self) -> str:
        """Everything the result depends on beside its other columns, as JSON."""
        return _described(self.variant.method, json.dumps(dict(self.variant.changes)), self.label_rate)


@cache
def _described(method: str, changes: str, label_rate: float) -> str:
    """Every parameter, those that were ``set``, and the share of labels."""
    settings = _varied(method, changes)
    return json.dumps({"label_rate": label_rate, "set": _changed(method, changes), **settings}, sort_keys=True)


def changed(variant: Variant) -> dict[str, Any]:
    """The parameters of a variant that differ from the method's defaults."""
    if not variant.changes:
        return {}
    return _changed(variant.method, json.dumps(dict(variant.changes)))


@cache
def _changed(method: str, changes: str) -> dict[str, Any]:
    defaults = _varied(method, "{}")
    return {name: value for name, value in _varied(method, changes).items() if value != defaults[name]}


@cache
def _varied(method: str, changes: str) -> dict[str, Any]:
    detector = Variant(method, method, json.loads(changes)).detector()
    return {
        name: value
        for name, value in parameters.values(detector).items()
        if name not in {"seed", "device"} and not dataclasses.is_dataclass(value)
    }


def spec_names() -> list[str]:
    """The tables that come with degem.

    Example:
        >>> "main" in spec_names()
        True
    """
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_spec(name: str) -> Spec:
    """The table of that name, or in that TOML file.

    Example:
        >>> read_spec("homophily").seeds
        (0, 1, 2)
    """
    path = FOLDER / f"{name}.toml" if name in spec_names() else Path(name)
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DegemError(f"there is no table {name!r}: choose {', '.join(spec_names())}, all, or a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise DegemError(f"{path}: {error}") from None
    try:
        return _spec(path.stem, raw)
    except DegemError as error:
        raise DegemError(f"{path}: {error}") from None


def _spec(name: str, raw: Mapping[str, Any]) -> Spec:
    _check_keys("it", raw, TABLE, needed={"datasets"})
    if not raw.get("methods") and not raw.get("variants"):
        raise DegemError('it has no row: add methods = ["degem"] or [[variants]]')
    return Spec(
        name=name,
        title=raw.get("title", name),
        published=raw.get("published", ""),
        variants=tuple(_variants(raw)),
        datasets=_datasets(raw["datasets"]),
        seeds=parse_seeds(str(raw.get("seeds", 5))),
        shifts=_shifts(raw["shifts"]) if "shifts" in raw else None,
        label_rates=tuple(float(rate) for rate in raw.get("label_rates", (1.0,))),
        protocol=raw.get("protocol", "strict"),
    )


def _variants(raw: Mapping[str, Any]) -> Iterator[Variant]:
    """The rows of a table; those of detectors that learn nothing stand in every one, so that artefacts are seen."""
    methods = [name for method in raw.get("methods", ()) for name in (Detector.registry if method == "*" else [method])]
    for method in dict.fromkeys(methods):
        Detector.registry.check(method)
        yield Variant(method, method)
    for entry in raw.get("variants", ()):
        _check_keys("a variant", entry, VARIANT, needed={"name", "method"})
        Detector.registry.check(entry["method"])
        yield Variant(entry["name"], entry["method"], entry.get("set", {}))
    yield from (Variant(method, method) for method in TRIVIAL if method not in methods)


def _check_keys(owner: str, raw: Mapping[str, Any], known: Keys, needed: set[str]) -> None:
    if raw.keys() - known.keys():
        unknown = ", ".join(sorted(raw.keys() - known.keys()))
        raise DegemError(f"unknown {unknown}; {owner} may have {', '.join(sorted(known))}")
    if needed - raw.keys():
        raise DegemError(f"{owner} lacks {', '.join(sorted(needed - raw.keys()))}")
    for key, value in raw.items():
        kind, allowed = known[key]
        try:
            TypeAdapter(kind).validate_python(value, strict=True)
        except ValidationError:
            raise DegemError(f"{key} = {value!r}: it may be {allowed}") from None


def _datasets(names: Iterable[str]) -> tuple[str, ...]:
    """Datasets as rows of results spell them, each once."""
    return tuple(dict.fromkeys(map(scenario_name, names)))


def _shifts(names: Sequence[str]) -> tuple[str, ...]:
    """Shifts, each of which there is."""
    for name in names:
        kind_of(name)
    return tuple(names)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds as the command line gives them: a number of seeds, or the seeds themselves.

    Example:
        >>> parse_seeds("3"), parse_seeds("11,12")
        ((0, 1, 2), (11, 12))
    """
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    counted = "," not in text
    if not numbers or min(numbers) < (1 if counted else 0):
        raise ParameterError(
            f"seeds are how many (5 is 0 to 4), or a list such as 11,12 (the seed 0 alone is 0,), got {text!r}"
        )
    return tuple(range(numbers[0])) if counted else tuple(dict.fromkeys(numbers))


def narrowed(
    spec: Spec,
    *,
    methods: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
    shifts: Sequence[str] | None = None,
    seeds: tuple[int, ...] | None = None,
) -> Spec:
    """The spec with only some of its methods, datasets, shifts and other seeds.

    A method or dataset that the table does not have is added to it, so that ``--datasets arxiv-structural`` works.
    """
    variants = spec.variants
    if methods is not None:
        for name in methods:
            if all(name != variant.name for variant in variants):
                Detector.registry.check(name)
        kept = tuple(variant for variant in variants if variant.name in methods or variant.method in methods)
        named = {variant.name for variant in kept} | {variant.method for variant in kept}
        variants = kept + tuple(Variant(name, name) for name in methods if name not in named)
    return dataclasses.replace(
        spec,
        variants=variants,
        datasets=_datasets(datasets) if datasets is not None else spec.datasets,
        shifts=_shifts(shifts) if shifts is not None else spec.shifts,
        seeds=seeds if seeds is not None else spec.seeds,
    )


def shifts_under(protocol: str, dataset: str) -> tuple[str, ...]:
    """The shifts of a dataset under a protocol.

    Example:
        >>> shifts_under("strict", "amazon-fraud"), shifts_under("arrival", "amazon-fraud")
        ((), ('fraud',))
    """
    return arrivals_of(dataset) if protocol == "arrival" else shifts_of(dataset)


def takes_part(method: str, dataset: str, protocol: str) -> bool:
    """Whether a protocol has what a method needs: under arrival nobody is known to be OOD, and some graphs lack labels.

    Example:
        >>> takes_part("msp", "cora", "arrival"), takes_part("msp", "amazon-fraud", "arrival")
        (True, False)
    """
    if protocol != "arrival":
        return True
    kind = Detector.registry[method]
    return not kind.needs_exposure and not (kind.needs_labels and dataset == FRAUD)


def tasks_of(specs: Iterable[Spec], protocol: str | None = None) -> list[Task]:
    """Every row that the tables need, once; there must be one.

    Arguments:
        specs: The tables.
        protocol: The protocol; default: each table's own.
    """
    specs = list(specs)
    if protocol not in (None, *PROTOCOLS):
        raise ParameterError(f"there is no protocol {protocol!r}: choose {', '.join(PROTOCOLS)}")
    found: dict[tuple[Any, ...], Task] = {}
    for spec in specs:
        under = protocol or spec.protocol
        for dataset in spec.datasets:
            shifts = [s for s in shifts_under(under, dataset) if spec.shifts is None or s in spec.shifts]
            variants = [variant for variant in spec.variants if takes_part(variant.method, dataset, under)]
            for rate, variant, shift, seed in itertools.product(spec.label_rates, variants, shifts, spec.seeds):
                task = Task(variant, dataset, shift, seed, under, rate)
                found.setdefault((variant.method, dataset, shift, seed, under, task.parameters), task)
    if not found:
        known = (
            f"{name} has {', '.join(shifts_under(protocol or s.protocol, name)) or 'no shift'}"
            for s in specs
            for name in s.datasets
        )
        raise ParameterError(
            f"no method, dataset and shift are left to run: {'; '.join(dict.fromkeys(known)) or 'no dataset is named'}"
        )
    return list(found.values())
