"""A scenario: what a detector may learn from, and what it is then asked about."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from degem.data.splits import Masks, keep_labels
from degem.graph import Graph, NodeSet
from degem.ops.features import row_normalize

# The domain shift: graphs of other countries (Twitch) and of other sources of papers (Citation).
ID_DOMAIN = "twitch-de"
EXPOSURE_DOMAIN = "twitch-en"
OOD_DOMAINS = {"ES": "twitch-es", "FR": "twitch-fr", "RU": "twitch-ru"}
CITATION = {name: f"citation-{name}" for name in ("acm", "dblp", "citation")}


@dataclass(frozen=True)
class Settings:
    """How a scenario is made.

    Arguments:
        seed: Seed of the split and of every shift.
        label_rate: The share of training labels kept. The other training nodes stay known as in-distribution.
    """

    seed: int = 0
    label_rate: float = 1.0


@dataclass(frozen=True)
class Scenario:
    """One training graph and every shift that shares it.

    Arguments:
        dataset: Its dataset.
        train_graph: What a detector is fitted on, with masks ``train`` and ``val``; no other node has a label.
        id_test: In-distribution nodes to score; their graph is ``train_graph`` itself.
        test_labels: The classes of ``id_test``.
        ood: OOD nodes to score, by the name of the shift.
        exposure: Nodes known to be OOD, for the methods that need such, by the name of the shift.
    """

    dataset: str
    train_graph: Graph
    id_test: NodeSet
    test_labels: NDArray[np.int64]
    ood: Mapping[str, NodeSet]
    exposure: Mapping[str, NodeSet]


def generator(seed: int, *purpose: str) -> np.random.Generator:
    """A generator of its own for each purpose, so that one draw does not move another."""
    return np.random.default_rng([seed, zlib.crc32("/".join(purpose).encode())])


def normalized(graph: Graph) -> Graph:
    """The graph with features of unit row sum, as every benchmark scenario has them; signed features stay as they are.

    A row sum means something for counts and multi-hot features, not for embeddings.
    """
    values = graph.features if isinstance(graph.features, np.ndarray) else graph.features.data
    return graph if (values < 0).any() else graph.replace(features=row_normalize(graph.features))


def known_only(graph: Graph, split: Masks, settings: Settings) -> Graph:
    """The graph with the masks ``train`` and ``val``, and labels on those nodes alone, as many as the settings say."""
    seen = split["train"] | split["val"]
    if settings.label_rate < 1:
        seen &= keep_labels(split["train"], graph.labels, settings.label_rate, settings.seed) | ~split["train"]
    return graph.replace(
        labels=np.where(seen, graph.labels, -1),
        masks={"train": split["train"], "val": split["val"]},
        columns={},
    )


def unlabelled(graph: Graph) -> Graph:
    """The graph without anything known of its nodes."""
    return graph.replace(labels=np.full(graph.num_nodes, -1), masks={}, columns={})


def all_nodes(graph: Graph) -> NodeSet:
    """Every node of a graph."""
    return NodeSet(graph, np.arange(graph.num_nodes))


def label_parts(labels: NDArray[np.int64], cut_class: int) -> tuple[NDArray[np.bool_], ...]:
    """Which nodes are in-distribution (labels above the cut class), exposure (the cut class) and OOD (below).

    Arguments:
        labels: The class of each node, −1 where unknown; such nodes are in none of the three.
        cut_class: The cut class t.

    Example:
        >>> [part.tolist() for part in label_parts(np.array([0, 1, 2, -1]), 1)]
        [[False, False, True, False], [False, True, False, False], [True, False, False, False]]
    """
    return labels > cut_class, labels == cut_class, (labels >= 0) & (labels < cut_class)
