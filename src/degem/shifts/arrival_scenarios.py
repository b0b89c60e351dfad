"""From the name of a dataset and of a kind of shift to an arrival."""

from __future__ import annotations

from pathlib import Path

from degem.data.datasets import load_dataset
from degem.data.splits import random_split
from degem.ops.neighbours import structural_features
from degem.shifts.arrival import Arrival, fraud, later_years, left_out, manipulated, other_networks
from degem.shifts.base import CITATION, ID_DOMAIN, OOD_DOMAINS, Settings, normalized
from degem.shifts.scenarios import (
    KINDS,
    SYNTHETIC,
    TWITCH,
    check_kind,
    cut_of,
    scenario_name,
    shifts_of,
    split_of,
)

FRAUD = "amazon-fraud"


def arrivals_of(dataset: str) -> tuple[str, ...]:
    """The shifts by which nodes of a dataset can arrive.

    Example:
        >>> arrivals_of("cora"), arrivals_of("citation-acm"), arrivals_of("amazon-fraud")
        (('structure', 'feature', 'label'), ('dblp', 'citation'), ('fraud',))
    """
    dataset = scenario_name(dataset)
    if dataset.startswith(SYNTHETIC):
        return ()
    if dataset == FRAUD:
        return KINDS["fraud"]
    if dataset in CITATION.values():
        return tuple(_other_domains(dataset))
    return shifts_of(dataset)


def load_arrival(dataset: str, kind: str, settings: Settings, data_dir: str | Path | None = None) -> Arrival:
    """The arrival of one kind on one dataset; features have unit row sums, but for accounts, which are no counts.

    Arguments:
        dataset: A dataset in any spelling, or ``twitch``.
        kind: ``manipulation`` (the shifts structure and feature), ``label``, ``domain``, ``time`` or ``fraud``.
        settings: Seed and share of labels.
        data_dir: The folder of raw files, see :func:`degem.data.datasets.load_dataset`.
    """
    dataset = scenario_name(dataset)
    check_kind(dataset, kind, arrivals_of(dataset), "arrival")
    name = ID_DOMAIN if dataset == TWITCH else dataset
    graph = load_dataset(name, data_dir)
    if kind == "fraud":
        return fraud(graph, settings, dataset)
    graph = normalized(graph)
    if kind == "time":
        features_of = structural_features if dataset == "arxiv-structural" else None
        return later_years(graph, settings, dataset, features_of)
    if kind == "domain":
        others = {shift: normalized(load_dataset(at, data_dir)) for shift, at in _other_domains(dataset).items()}
        return other_networks(graph, random_split(graph.labelled, settings.seed), others, settings, dataset)
    if kind == "label":
        return left_out(graph, *cut_of(dataset, graph, settings.seed), settings, dataset)
    return manipulated(graph, split_of(dataset, graph, graph.labelled, settings.seed), settings, dataset)


def _other_domains(dataset: str) -> dict[str, str]:
    """The networks that arrive beside a dataset, by the name of the shift."""
    if dataset == TWITCH:
        return OOD_DOMAINS
    return {name: at for name, at in CITATION.items() if at != dataset}
