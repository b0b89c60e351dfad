"""Who may be learnt from: the training nodes of a graph, and the held-out ones that calibrate."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.data.outputs import num_logits
from degem.errors import CalibrationWarning, GraphError
from degem.graph import Graph, NodeSet

SEEN = (
    "your network may have been trained on the nodes that calibrate, and then p-values are too small on new ones: name "
    "the nodes that it was trained on (train= of degem.wrap, a column train_mask)"
)
CALIBRATION_SHARE, MOST_CALIBRATION_NODES = 0.1, 10_000  # more do not steady a rate any further


@dataclass(frozen=True)
class TrainingSet:
    """All that a detector sees while it learns.

    Arguments:
        graph: The training graph. Only training nodes carry a label, numbered 0 … C − 1; it has no masks or columns.
        nodes: The in-distribution nodes to learn from, sorted.
        num_classes: The number of classes C among their labels; 0 without labels.
        exposure: Nodes known to be OOD, for the methods that use such.
        seed: The detector's seed.
    """

    graph: Graph
    nodes: NDArray[np.int64]
    num_classes: int
    exposure: NodeSet | None
    seed: int

    @property
    def labelled_nodes(self) -> NDArray[np.int64]:
        """The training nodes that have a label."""
        return self.nodes[self.graph.labels[self.nodes] >= 0]

    def without(self, nodes: NDArray[np.int64]) -> TrainingSet:
        """The training set without some nodes and their edges."""
        if len(nodes) == 0:
            return self
        kept = ~np.isin(np.arange(self.graph.num_nodes), nodes)
        places = np.cumsum(kept) - 1
        inside = places[self.nodes[kept[self.nodes]]]
        return replace(self, graph=self.graph.subgraph(kept), nodes=inside)


def resolve_training_set(
    graph: Graph,
    train_mask: ArrayLike | None,
    calibration_mask: ArrayLike | None,
    exposure: NodeSet | None,
    seed: int,
    *,
    calibrate: bool = True,
) -> tuple[TrainingSet, NDArray[np.int64], tuple[int, ...]]:
    """The training set, the calibration nodes, and the classes of ``graph`` that the labels 0 … C − 1 stand for.

    Calibration nodes and their edges are not in the training graph: new nodes will not have been there either. Without
    calibration the training graph is the graph, and nodes of a ``val`` mask are in it as unlabelled ones.
    """
    known = graph.labelled if graph.labelled.any() else np.ones(graph.num_nodes, dtype=np.bool_)
    train = _given_mask(graph, "train", train_mask)
    held_out = _given_mask(graph, "val", calibration_mask)
    candidates = known if train is None else train
    if held_out is None:
        nothing = np.zeros(graph.num_nodes, dtype=np.bool_)
        held_out = _seeded_share(candidates, seed) if calibrate else nothing
    if calibrate and train is None and num_logits(graph.feature_names) is not None:
        warnings.warn(CalibrationWarning(SEEN), stacklevel=3)
    if train is None:
        train = known & ~held_out
    elif calibration_mask is None and "val" not in graph.masks:
        train = train & ~held_out
    if (train & held_out).any():
        raise GraphError(f"{int((train & held_out).sum())} nodes are both in the training and in the calibration mask")
    if not train.any():
        raise GraphError("no node is left to train on: the graph needs at least two in-distribution nodes")
    seen = train & graph.labelled
    classes = np.unique(graph.labels[seen])
    labels = np.full(graph.num_nodes, -1, dtype=np.int64)
    labels[seen] = np.searchsorted(classes, graph.labels[seen])
    bare = graph.replace(labels=labels, class_names=None, masks={}, columns={})
    training = TrainingSet(bare, np.flatnonzero(train), len(classes), exposure, seed)
    if calibrate:
        training = training.without(np.flatnonzero(held_out))
        if exposure is not None and exposure.graph is graph:
            training = replace(training, exposure=_within(exposure, training.graph, ~held_out))
    return training, np.flatnonzero(held_out), tuple(int(value) for value in classes)


def _within(exposure: NodeSet, graph: Graph, kept: NDArray[np.bool_]) -> NodeSet:
    """Exposure nodes of the graph that was fitted on, in the training graph that was made of it."""
    places = np.cumsum(kept) - 1
    return NodeSet(graph, places[exposure.nodes[kept[exposure.nodes]]])


def _given_mask(graph: Graph, name: str, mask: ArrayLike | None) -> NDArray[np.bool_] | None:
    """The caller's mask, else the graph's own of that name, else None."""
    if mask is None:
        return graph.masks.get(name)
    array = np.asarray(mask)
    if array.shape != (graph.num_nodes,) or array.dtype != np.bool_:
        raise GraphError(
            f"the {name} mask must be one boolean for each of the {graph.num_nodes} nodes, "
            f"got {array.dtype} of shape {array.shape}"
        )
    return array


def _seeded_share(candidates: NDArray[np.bool_], seed: int) -> NDArray[np.bool_]:
    """A seeded tenth of the candidates, at least one, at most 10,000, never all."""
    nodes = np.flatnonzero(candidates)
    count = min(max(1, round(CALIBRATION_SHARE * len(nodes))), MOST_CALIBRATION_NODES, len(nodes) - 1)
    chosen = np.random.default_rng(seed).permutation(nodes)[: max(count, 0)]
    return np.isin(np.arange(len(candidates)), chosen)
