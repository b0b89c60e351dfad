"""The training nodes that lie nearest in latent space."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from degem.detectors.base import Detector, HasLatents
from degem.explain.explanation import Nearest
from degem.graph import Graph

NUM_NEAREST = 3
MAX_REFERENCE_NODES = 2_000


def nearest_of(
    detector: Detector, graph: Graph, rows: NDArray[np.int64], reference: Graph
) -> list[tuple[Nearest, ...]]:
    """The nearest of at most ``MAX_REFERENCE_NODES`` training nodes of the reference."""
    from scipy.spatial.distance import cdist  # slow to load, and few explanations name neighbours

    if not isinstance(detector, HasLatents):
        return [()] * len(rows)
    known = reference.masks.get(
        "train", reference.labelled if reference.labelled.any() else np.ones(reference.num_nodes, bool)
    )
    pool = np.flatnonzero(known)
    if len(pool) > MAX_REFERENCE_NODES:
        pool = np.sort(np.random.default_rng(detector.seed).choice(pool, MAX_REFERENCE_NODES, replace=False))
    distances = cdist(detector.embed(graph, nodes=rows), detector.embed(reference, nodes=pool))
    if reference is graph:
        distances[rows[:, None] == pool[None, :]] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")[:, :NUM_NEAREST]
    return [
        tuple(
            Nearest(str(reference.node_ids[pool[column]]), float(line[column]), _class_of(reference, pool[column]))
            for column in columns
            if np.isfinite(line[column])
        )
        for line, columns in zip(distances, order, strict=True)
    ]


def _class_of(graph: Graph, node: int) -> str | None:
    label = int(graph.labels[node])
    if label < 0:
        return None
    return graph.class_names[label] if graph.class_names else str(label)
