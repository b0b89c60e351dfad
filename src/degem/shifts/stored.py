"""Scenarios to and from the graphs and arrays of a cache."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from degem.data.arrays import Arrays
from degem.graph import Graph, NodeSet
from degem.shifts.base import Scenario


def pack(scenario: Scenario) -> tuple[dict[str, Graph], Arrays]:
    """Distinct graphs by name, and which nodes of which graph each part is."""
    graphs: dict[str, Graph] = {}
    arrays: Arrays = {"test_labels": scenario.test_labels}

    def name_of(graph: Graph) -> str:
        for name, kept in graphs.items():
            if kept is graph:
                return name
        graphs[f"g{len(graphs)}"] = graph
        return f"g{len(graphs) - 1}"

    arrays["train"] = np.array(name_of(scenario.train_graph))
    for part, sets in _parts(scenario):
        for name, nodes in sets.items():
            arrays[f"{part}/{name}/graph"] = np.array(name_of(nodes.graph))
            arrays[f"{part}/{name}/nodes"] = nodes.nodes
    return graphs, arrays


def _parts(scenario: Scenario) -> Iterable[tuple[str, Any]]:
    return (("id", {"test": scenario.id_test}), ("ood", scenario.ood), ("exposure", scenario.exposure))


def unpack(dataset: str, graphs: dict[str, Graph], arrays: Arrays) -> Scenario:
    """The inverse of :func:`pack`; parts that were one object are one object again."""
    known: dict[tuple[str, bytes], NodeSet] = {}

    def node_set(part: str, name: str) -> NodeSet:
        at, nodes = str(arrays[f"{part}/{name}/graph"]), arrays[f"{part}/{name}/nodes"]
        return known.setdefault((at, nodes.tobytes()), NodeSet(graphs[at], nodes))

    def named(part: str) -> dict[str, NodeSet]:
        names = [key.split("/")[1] for key in arrays if key.startswith(f"{part}/") and key.endswith("/nodes")]
        return {name: node_set(part, name) for name in names}

    return Scenario(
        dataset=dataset,
        train_graph=graphs[str(arrays["train"])],
        id_test=node_set("id", "test"),
        test_labels=arrays["test_labels"],
        ood=named("ood"),
        exposure=named("exposure"),
    )
