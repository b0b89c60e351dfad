"""Arrival: a graph that grows by new in-distribution nodes and a few OOD ones, all absent when a detector is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.data.splits import Masks, random_split
from degem.graph import Graph
from degem.ops.features import Features, stacked
from degem.shifts import time
from degem.shifts.base import Settings, generator, known_only, label_parts, unlabelled
from degem.shifts.manipulation import mixed_rows

NEW_ID_SHARE = 0.2  # of the ID test nodes
OOD_SHARE, LEAST_OOD = 0.05, 20  # of all nodes: few, so that neighbours of OOD nodes are mostly normal


@dataclass(frozen=True)
class Growth:
    """A grown graph, and which of its nodes have arrived.

    Arguments:
        graph: The training graph with new nodes and their edges; what it shares with the training graph keeps its
            ``node_ids``. It has no labels and no masks.
        new_id: In-distribution nodes that have arrived.
        ood: OOD nodes that have arrived.
        labels: The classes of ``new_id``, −1 where unknown.
        ood_labels: The classes of ``ood``, −1 where unknown; they may be none of the training graph's.
    """

    graph: Graph
    new_id: NDArray[np.int64]
    ood: NDArray[np.int64]
    labels: NDArray[np.int64]
    ood_labels: NDArray[np.int64]


@dataclass(frozen=True)
class Arrival:
    """One training graph and every growth that starts from it.

    Arguments:
        dataset: Its dataset.
        train_graph: What a detector is fitted on. With labels, it has the masks ``train`` and ``val``, and no other
            node has a label; without, every node is in-distribution.
        grown: What it is then asked about, by the name of the shift.
    """

    dataset: str
    train_graph: Graph
    grown: Mapping[str, Growth]


def manipulated(graph: Graph, split: Masks, settings: Settings, dataset: str = "") -> Arrival:
    """Structure and feature: some ID test nodes arrive wired at random, or with features mixed from two other nodes.

    The same nodes are the OOD ones of both shifts, so that one training graph serves both.

    Arguments:
        graph: The ID graph, with labels.
        split: Its masks ``train``, ``val`` and ``test``.
        settings: Seed and share of labels.
        dataset: The name it goes by.
    """
    order = generator(settings.seed, "arrival").permutation(np.flatnonzero(split["test"]))
    new, rest = np.split(order, [round(NEW_ID_SHARE * len(order))])
    new, ood = np.sort(new), np.sort(rest[: num_ood(graph.num_nodes)])
    known = known_only(graph, split, settings).subgraph(_without(graph, new, ood))

    def grown(changed: Graph) -> Growth:
        return Growth(unlabelled(changed), new, ood, graph.labels[new], graph.labels[ood])

    rewired = graph.replace(adjacency=rewire(graph.adjacency, ood, generator(settings.seed, "arrival", "structure")))
    rows = mixed_rows(graph.features, len(ood), generator(settings.seed, "arrival", "feature"))
    mixed = graph.replace(features=_with_rows(graph.features, ood, rows))
    return Arrival(dataset, known, {"structure": grown(rewired), "feature": grown(mixed)})


def left_out(graph: Graph, split: Masks, cut_class: int, settings: Settings, dataset: str = "") -> Arrival:
    """Label: some nodes of left-out classes arrive with their real edges; all others of those classes never exist.

    Arguments:
        graph: The graph, with all labels.
        split: Masks ``train``, ``val`` and ``test`` of ID nodes.
        cut_class: The cut class t: ID = labels > t, OOD = labels < t, and the class t itself is absent.
        settings: Seed and share of labels.
        dataset: The name it goes by.
    """
    rng = generator(settings.seed, "arrival", "label")
    _, exposed, out = label_parts(graph.labels, cut_class)
    new = _new_id(split, rng)
    ood = rng.permutation(np.flatnonzero(out))[: num_ood(graph.num_nodes)]
    present = ~(out | exposed)
    known = known_only(graph, split, settings).subgraph(present & _without(graph, new))
    present[ood] = True
    return Arrival(dataset, known, {"label": _growth(graph.subgraph(present), graph, present, new, ood)})


def fraud(graph: Graph, settings: Settings, dataset: str = "") -> Arrival:
    """Fraud: fitted on normal accounts without labels; frauds and a share of the normal ones arrive.

    Arguments:
        graph: The graph, with the column ``is_fraud``.
        settings: The seed.
        dataset: The name it goes by.
    """
    ood = np.asarray(graph.columns["is_fraud"], dtype=np.bool_)
    new = _share(np.flatnonzero(~ood), generator(settings.seed, "arrival", "fraud"))
    known = unlabelled(graph).subgraph(~ood & _without(graph, new))
    return Arrival(dataset, known, {"fraud": _growth(graph, graph, np.full(len(ood), True), new, np.flatnonzero(ood))})


def other_networks(
    graph: Graph, split: Masks, others: Mapping[str, Graph], settings: Settings, dataset: str = ""
) -> Arrival:
    """Domain: another whole network arrives beside the one that was fitted on, without an edge between them.

    Arguments:
        graph: The ID graph, with labels.
        split: Its masks ``train``, ``val`` and ``test``.
        others: The OOD graphs by the name of the shift, with the same feature columns.
        settings: Seed and share of labels.
        dataset: The name it goes by.
    """
    new = _new_id(split, generator(settings.seed, "arrival", "domain"))
    known = known_only(graph, split, settings).subgraph(_without(graph, new))

    def grown(other: Graph) -> Growth:
        both = beside(unlabelled(graph), unlabelled(other))
        return Growth(both, new, np.arange(graph.num_nodes, both.num_nodes), graph.labels[new], other.labels)

    return Arrival(dataset, known, {name: grown(other) for name, other in others.items()})


def later_years(
    graph: Graph, settings: Settings, dataset: str = "", features_of: time.FeaturesOf | None = None
) -> Arrival:
    """Time: papers of a later year arrive with their edges to earlier ones and among each other.

    Arguments:
        graph: The graph of all years, with labels and the column ``year``.
        settings: Seed and share of labels.
        dataset: The name it goes by.
        features_of: Makes structural features anew on each graph, see :func:`degem.shifts.time.induced`.
    """
    year = np.asarray(graph.columns["year"])
    early = year <= time.ID_UNTIL
    split = random_split(early & graph.labelled, settings.seed)
    new = _new_id(split, generator(settings.seed, "arrival", "time"))
    known = time.induced(known_only(graph, split, settings), early & _without(graph, new), features_of)

    def grown(at: int) -> Growth:
        rng = generator(settings.seed, "arrival", str(at))
        ood = rng.permutation(np.flatnonzero(year == at))[: num_ood(int(early.sum()))]
        present = early.copy()
        present[ood] = True
        return _growth(time.induced(graph, present, features_of), graph, present, new, ood)

    return Arrival(dataset, known, {str(at): grown(at) for at in time.OOD_YEARS})


def num_ood(num_nodes: int) -> int:
    """How many OOD nodes arrive in a graph of so many nodes.

    Example:
        >>> num_ood(2708), num_ood(183)
        (135, 20)
    """
    return max(LEAST_OOD, round(OOD_SHARE * num_nodes))


def rewire(adjacency: sp.csr_array, nodes: NDArray[np.int64], rng: np.random.Generator) -> sp.csr_array:
    """The adjacency with each of ``nodes`` joined to as many nodes as before, drawn at random among all others.

    A node that another one of ``nodes`` draws gains that edge besides.

    Arguments:
        adjacency: A symmetric adjacency; not changed.
        nodes: The nodes to wire anew.
        rng: The source of randomness.

    Example:
        >>> path = sp.csr_array(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
        >>> rewire(path, np.array([0]), np.random.default_rng(0)).sum(axis=1)[0]
        np.float32(1.0)
    """
    num_nodes = adjacency.shape[0]
    kept = np.ones(num_nodes, dtype=np.float32)
    kept[nodes] = 0
    rest = sp.coo_array(sp.diags_array(kept) @ adjacency @ sp.diags_array(kept))
    rest.eliminate_zeros()
    degrees = np.diff(adjacency.indptr)[nodes]
    drawn = [rng.choice(num_nodes - 1, size=degree, replace=False, shuffle=False) for degree in degrees]
    ends = np.concatenate([chosen + (chosen >= node) for node, chosen in zip(nodes, drawn, strict=True)])
    starts = np.repeat(nodes, degrees)
    rows, columns = np.concatenate([rest.row, starts, ends]), np.concatenate([rest.col, ends, starts])
    summed = sp.coo_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=adjacency.shape).tocsr()
    summed.sort_indices()
    summed.data[:] = 1  # two nodes may have drawn each other
    return summed


def beside(first: Graph, second: Graph) -> Graph:
    """Two graphs as one, without an edge between them; nodes of the second are numbered after those of the first."""
    return Graph(
        features=stacked(first.features, second.features),
        adjacency=sp.csr_array(sp.block_diag([first.adjacency, second.adjacency], format="csr")),
        labels=np.concatenate([first.labels, second.labels]),
        node_ids=np.concatenate([first.node_ids, first.num_nodes + np.arange(second.num_nodes)]),
    )


def _growth(
    grown: Graph,
    graph: Graph,
    present: NDArray[np.bool_],
    new: NDArray[np.int64],
    ood: NDArray[np.int64],
) -> Growth:
    """The growth whose graph holds the nodes of ``graph`` that are ``present``, in their order."""
    place = np.cumsum(present) - 1
    ood = np.sort(ood)
    return Growth(unlabelled(grown), place[new], place[ood], graph.labels[new], graph.labels[ood])


def _new_id(split: Masks, rng: np.random.Generator) -> NDArray[np.int64]:
    return _share(np.flatnonzero(split["test"]), rng)


def _share(nodes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    return np.sort(rng.permutation(nodes)[: round(NEW_ID_SHARE * len(nodes))])


def _without(graph: Graph, *absent: NDArray[np.int64]) -> NDArray[np.bool_]:
    return ~np.isin(np.arange(graph.num_nodes), np.concatenate(absent))


def _with_rows(features: Features, nodes: NDArray[np.int64], rows: Features) -> Features:
    """The features with the rows of ``nodes`` replaced."""
    source = np.arange(features.shape[0])
    source[nodes] = features.shape[0] + np.arange(len(nodes))
    return stacked(features, rows)[source]
