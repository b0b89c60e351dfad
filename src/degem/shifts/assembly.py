"""From a graph, a split and OOD nodes to a scenario: who is in the training graph, and what it knows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from degem.data.splits import Masks, keep_labels
from degem.graph import Graph, NodeSet
from degem.shifts.base import Scenario, Settings, all_nodes, generator, known_only, unlabelled
from degem.shifts.feature import feature_shift
from degem.shifts.label import label_parts
from degem.shifts.structure import structure_shift


def manipulation(graph: Graph, split: Masks, settings: Settings, dataset: str = "") -> Scenario:
    """Structure and feature shift: OOD graphs beside an ID graph.

    Arguments:
        graph: The ID graph, with labels.
        split: Its masks ``train``, ``val`` and ``test``.
        settings: How the scenario is made.
        dataset: The name it goes by.
    """
    shifts: dict[str, Callable[[Graph, np.random.Generator], Graph]] = {
        "structure": structure_shift,
        "feature": feature_shift,
    }
    seen = graph.subgraph(~split["test"]) if settings.without_test else graph  # exposure nodes are trained on

    def drawn(use: str, source: Graph) -> dict[str, NodeSet]:
        return {
            name: all_nodes(unlabelled(shift(source, generator(settings.seed, name, use))))
            for name, shift in shifts.items()
        }

    return assemble(
        dataset,
        graph,
        split,
        settings,
        absent=np.zeros(graph.num_nodes, dtype=np.bool_),
        ood=drawn("ood", graph),
        exposure=drawn("exposure", seen),
    )


def label_leave_out(graph: Graph, split: Masks, cut_class: int, settings: Settings, dataset: str = "") -> Scenario:
    """Label shift: the OOD nodes are nodes of the same graph, unlabelled, in the training graph unless kept out.

    Arguments:
        graph: The graph, with all labels.
        split: Masks ``train``, ``val`` and ``test`` of ID nodes.
        cut_class: The cut class t.
        settings: How the scenario is made.
        dataset: The name it goes by.
    """
    _, exposed, out = label_parts(graph.labels, cut_class)
    whole = _with_rate(graph, split, settings)
    exposure = NodeSet(whole, np.flatnonzero(exposed))
    if settings.without_ood or settings.without_test:
        hidden = out | split["test"]
        exposure = NodeSet(whole.subgraph(~hidden), np.flatnonzero(exposed[~hidden]))
    return assemble(
        dataset,
        graph,
        split,
        settings,
        absent=out | exposed,
        ood={"label": NodeSet(whole, np.flatnonzero(out))},
        exposure={"label": exposure},
        whole=whole,
    )


def _with_rate(graph: Graph, split: Masks, settings: Settings) -> Graph:
    known = known_only(graph, split)
    if settings.label_rate == 1:
        return known
    kept = keep_labels(split["train"], graph.labels, settings.label_rate, settings.seed)
    return known.replace(labels=np.where(split["train"] & ~kept, -1, known.labels))


def assemble(
    dataset: str,
    graph: Graph,
    split: Masks,
    settings: Settings,
    *,
    absent: NDArray[np.bool_],
    ood: dict[str, NodeSet],
    exposure: dict[str, NodeSet],
    whole: Graph | None = None,
) -> Scenario:
    """A scenario whose training graph lacks ``absent`` and test nodes, if the settings say so."""
    whole = whole or _with_rate(graph, split, settings)
    test = np.flatnonzero(split["test"])
    away = np.zeros(graph.num_nodes, dtype=np.bool_)
    if settings.without_ood:
        away |= absent
    if settings.without_test:
        away |= split["test"]
    train_graph = whole.subgraph(~away) if away.any() else whole
    return Scenario(dataset, train_graph, NodeSet(whole, test), graph.labels[test], ood, exposure)
