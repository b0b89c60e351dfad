"""From a graph, a split and OOD nodes to a scenario: who is in the training graph, and what it knows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from degem.data.splits import Masks
from degem.graph import Graph, NodeSet
from degem.shifts.base import Scenario, Settings, all_nodes, generator, known_only, unlabelled
from degem.shifts.feature import feature_shift
from degem.shifts.label import label_parts
from degem.shifts.structure import structure_shift


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
