"""From the name of a dataset and of shifts to scenarios, seeded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from degem.data.datasets import DATASETS, dataset_name, describe, load_dataset
from degem.data.splits import Masks, random_split
from degem.errors import DegemError
from degem.graph import Graph, NodeSet
from degem.ops.neighbours import structural_features
from degem.shifts import time
from degem.shifts.base import (
    CITATION,
    EXPOSURE_DOMAIN,
    ID_DOMAIN,
    OOD_DOMAINS,
    Scenario,
    Settings,
    all_nodes,
    generator,
    known_only,
    label_parts,
    normalized,
    unlabelled,
)
from degem.shifts.homophily import homophily_graph
from degem.shifts.manipulation import feature_shift, structure_shift

Load = Callable[[str], Graph]  # a dataset by its name
SYNTHETIC = "synthetic-cora-"
TWITCH = "twitch"  # as a scenario it is six graphs; load_dataset("twitch") is the German one
KINDS: dict[str, tuple[str, ...]] = {
    "manipulation": ("structure", "feature"),
    "label": ("label",),
    "domain": (*OOD_DOMAINS, *CITATION),
    "time": tuple(str(year) for year in time.OOD_YEARS),
    "fraud": ("fraud",),
}


def kind_of(shift: str) -> str:
    """The kind of a shift; shifts of one kind share a training graph.

    Example:
        >>> kind_of("ES")
        'domain'
    """
    for kind, shifts in KINDS.items():
        if shift in shifts:
            return kind
    raise DegemError(f"there is no shift {shift!r}: known are {', '.join(sum(KINDS.values(), ()))}")


def scenario_name(dataset: str) -> str:
    """The one spelling of the name that scenarios and rows of results carry, from any case and any alias.

    Example:
        >>> scenario_name("Cora"), scenario_name("Twitch"), scenario_name("synthetic-cora-1")
        ('cora', 'twitch', 'synthetic-cora-1.0')
    """
    name = dataset.lower()
    if name == TWITCH:
        return name
    if not name.startswith(SYNTHETIC):
        return dataset_name(dataset)
    try:
        homophily = float(name.removeprefix(SYNTHETIC))
    except ValueError:
        homophily = -1.0
    if not 0 <= homophily <= 1:
        raise DegemError(f"there is no dataset {dataset!r}: {SYNTHETIC}H has a homophily H between 0 and 1")
    return f"{SYNTHETIC}{homophily}"


def shifts_of(dataset: str) -> tuple[str, ...]:
    """The shifts of a whole graph that make sense for a dataset.

    :func:`degem.shifts.arrival_scenarios.arrivals_of` has others.

    Example:
        >>> shifts_of("Cora")
        ('structure', 'feature', 'label')
    """
    dataset = scenario_name(dataset)
    if dataset.startswith(SYNTHETIC):
        return ("feature",)
    if dataset == TWITCH:
        return tuple(OOD_DOMAINS)
    if dataset.startswith("arxiv"):
        return KINDS["time"]
    known = describe(dataset)
    if known.num_classes == 0:
        return ()
    return KINDS["manipulation"] + (KINDS["label"] if known.cut_class is not None else ())


def load_scenario(dataset: str, kind: str, settings: Settings, data_dir: str | Path | None = None) -> Scenario:
    """The scenario of one kind of shift on one dataset.

    Arguments:
        dataset: A dataset in any spelling, ``twitch``, or ``synthetic-cora-H`` with a homophily H between 0 and 1.
        kind: ``manipulation`` (the shifts structure and feature), ``label``, ``domain`` or ``time``.
        settings: How it is made.
        data_dir: The folder of raw files, see :func:`degem.data.datasets.load_dataset`.
    """
    dataset = scenario_name(dataset)
    check_kind(dataset, kind, shifts_of(dataset), "shift")
    return _MAKERS[kind](dataset, settings, lambda name: load_dataset(name, data_dir))


def check_kind(dataset: str, kind: str, shifts: Sequence[str], what: str) -> None:
    """Refuse a kind of shift, or of arrival, that a dataset does not have."""
    if kind not in map(kind_of, shifts):
        known = ", ".join(f"{shift} (kind {kind_of(shift)!r})" for shift in shifts) or "none"
        raise DegemError(f"{dataset} has no {what} of the kind {kind!r}: it has {known}")


def _manipulation(dataset: str, settings: Settings, load: Load) -> Scenario:
    if dataset.startswith(SYNTHETIC):
        homophily = float(dataset.removeprefix(SYNTHETIC))
        graph, entries = homophily_graph(load("cora"), homophily, generator(settings.seed, "homophily")), None
    else:
        graph, entries = load(dataset), describe(dataset).stored_entries
    graph = normalized(graph)
    split = split_of(dataset, graph, graph.labelled, settings.seed)
    return manipulation(graph, split, settings, dataset, stored_entries=entries)


def _label(dataset: str, settings: Settings, load: Load) -> Scenario:
    graph = normalized(load(dataset))
    return label_leave_out(graph, *cut_of(dataset, graph, settings.seed), settings, dataset)


def cut_of(dataset: str, graph: Graph, seed: int) -> tuple[Masks, int]:
    """The split of the ID nodes of a label shift, and its cut class."""
    cut_class = describe(dataset).cut_class
    assert cut_class is not None, "else it has no label shift"
    return split_of(dataset, graph, label_parts(graph.labels, cut_class)[0], seed), cut_class


def _domain(dataset: str, settings: Settings, load: Load) -> Scenario:
    graph = normalized(load(ID_DOMAIN))
    exposure = all_nodes(unlabelled(normalized(load(EXPOSURE_DOMAIN))))
    return assemble(
        dataset,
        graph,
        random_split(graph.labelled, settings.seed),
        settings,
        ood={name: all_nodes(unlabelled(normalized(load(at)))) for name, at in OOD_DOMAINS.items()},
        exposure=dict.fromkeys(OOD_DOMAINS, exposure),
    )


def _time(dataset: str, settings: Settings, load: Load) -> Scenario:
    graph = normalized(load(dataset))
    year = np.asarray(graph.columns["year"])
    features_of = structural_features if dataset == "arxiv-structural" else None

    def until(last: int, first: int) -> NodeSet:
        upto = time.induced(graph, year <= last, features_of)
        return NodeSet(unlabelled(upto), np.flatnonzero(np.asarray(upto.columns["year"]) >= first))

    inside = time.induced(graph, year <= time.ID_UNTIL, features_of)
    exposure = until(time.EXPOSURE_UNTIL, time.ID_UNTIL + 1)
    return assemble(
        dataset,
        inside,
        random_split(inside.labelled, settings.seed),
        settings,
        ood={str(at): until(at, at) for at in time.OOD_YEARS},
        exposure=dict.fromkeys(map(str, time.OOD_YEARS), exposure),
    )


_MAKERS: dict[str, Callable[[str, Settings, Load], Scenario]] = {
    "manipulation": _manipulation,
    "label": _label,
    "domain": _domain,
    "time": _time,
}


def split_of(dataset: str, graph: Graph, inside: NDArray[np.bool_], seed: int) -> Masks:
    """The public split where the dataset has one that benchmarks use, else a seeded 10/10/80, of ID nodes."""
    if dataset in DATASETS and DATASETS[dataset].public_split:
        return {part: graph.masks[part] & inside for part in ("train", "val", "test")}
    return random_split(inside, seed)


def manipulation(
    graph: Graph, split: Masks, settings: Settings, dataset: str = "", *, stored_entries: int | None = None
) -> Scenario:
    """Structure and feature shift: OOD graphs beside an ID graph.

    Arguments:
        graph: The ID graph, with labels.
        split: Its masks ``train``, ``val`` and ``test``.
        settings: How the scenario is made.
        dataset: The name it goes by.
        stored_entries: What the density of the structure shift counts, see :func:`structure_shift`.
    """
    shifts: dict[str, Callable[[Graph, np.random.Generator], Graph]] = {
        "structure": partial(structure_shift, stored_entries=stored_entries),
        "feature": feature_shift,
    }

    def drawn(use: str) -> dict[str, NodeSet]:
        return {
            name: all_nodes(unlabelled(shift(graph, generator(settings.seed, name, use))))
            for name, shift in shifts.items()
        }

    return assemble(dataset, graph, split, settings, ood=drawn("ood"), exposure=drawn("exposure"))


def label_leave_out(graph: Graph, split: Masks, cut_class: int, settings: Settings, dataset: str = "") -> Scenario:
    """Label shift: the OOD nodes are nodes of the same graph, in the training graph without a label.

    Arguments:
        graph: The graph, with all labels.
        split: Masks ``train``, ``val`` and ``test`` of ID nodes.
        cut_class: The cut class t.
        settings: How the scenario is made.
        dataset: The name it goes by.
    """
    _, exposed, out = label_parts(graph.labels, cut_class)
    whole, test = known_only(graph, split, settings), np.flatnonzero(split["test"])
    return Scenario(
        dataset,
        whole,
        NodeSet(whole, test),
        graph.labels[test],
        ood={"label": NodeSet(whole, np.flatnonzero(out))},
        exposure={"label": NodeSet(whole, np.flatnonzero(exposed))},
    )


def assemble(
    dataset: str,
    graph: Graph,
    split: Masks,
    settings: Settings,
    *,
    ood: dict[str, NodeSet],
    exposure: dict[str, NodeSet],
) -> Scenario:
    """A scenario whose OOD nodes live in graphs of their own."""
    whole, test = known_only(graph, split, settings), np.flatnonzero(split["test"])
    return Scenario(dataset, whole, NodeSet(whole, test), graph.labels[test], ood, exposure)
