"""Two small graphs that need no download: one homophilic, one heterophilic, both with OOD nodes in them.

In both the OOD nodes are unlabelled; the columns ``is_ood`` and ``true_class`` are the ground truth.
The masks ``train``, ``val`` and ``test`` split the in-distribution nodes.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.data.splits import random_split
from degem.graph import Graph


def digits_graph(*, seed: int = 0) -> Graph:
    """Scikit-learn's digits, each joined to its ten nearest neighbours; the classes 7, 8 and 9 are OOD.

    1,797 nodes (8 × 8 pixels in 64 features); edge homophily over 0.9.

    Arguments:
        seed: Seed of the split.

    Example:
        >>> graph = digits_graph()
        >>> graph
        Graph(1,797 nodes, 12,340 edges, 64 features, 7 classes)
        >>> int(graph.columns["is_ood"].sum())
        533
    """
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    pixels, classes = load_digits(return_X_y=True)
    neighbours = kneighbors_graph(pixels, n_neighbors=10)
    edges = np.stack(sp.triu(neighbours.maximum(neighbours.T)).nonzero())
    return _with_left_out(pixels / 16, edges, classes, num_known=7, seed=seed)


def heterophilic_graph(*, num_nodes: int = 1500, homophily: float = 0.1, seed: int = 0) -> Graph:
    """A graph whose neighbours mostly differ in class, from a seeded generator; two of its seven classes are OOD.

    Each class has a Gaussian cloud of features. Each node draws four neighbours: one of its own class with
    probability ``homophily``, else one of the next two classes, round the circle.

    Arguments:
        num_nodes: How many nodes.
        homophily: The share of edges within a class.
        seed: Seed of the generator.

    Example:
        >>> heterophilic_graph()
        Graph(1,500 nodes, 5,982 edges, 32 features, 5 classes)
    """
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.arange(num_nodes) % 7)
    centres = rng.standard_normal((7, 32))
    features = centres[classes] + 1.5 * rng.standard_normal((num_nodes, 32))
    sources = np.repeat(np.arange(num_nodes), 4)
    step = np.where(rng.random(len(sources)) < homophily, 0, rng.integers(1, 3, len(sources)))
    targets = _members(classes, (classes[sources] + step) % 7, rng)
    edges = np.sort(np.stack([sources, targets]), axis=0)
    edges = np.unique(edges[:, sources != targets], axis=1)
    return _with_left_out(features, edges, classes, num_known=5, seed=seed)


def arriving(graph: Graph, *, share: float = 0.05, seed: int = 0) -> tuple[Graph, Graph]:
    """A graph before and after an arrival: its test nodes and a few of its OOD nodes join.

    Arguments:
        graph: A graph of this module.
        share: How many OOD nodes join, as a share of all nodes.
        seed: Seed of the draw.

    Example:
        >>> before, after = arriving(digits_graph())
        >>> before.num_nodes, after.num_nodes
        (885, 1354)
    """
    is_ood, test = graph.columns["is_ood"], graph.masks["test"]
    strange = np.random.default_rng(seed).permutation(np.flatnonzero(is_ood))[: round(share * graph.num_nodes)]
    after = ~is_ood
    after[strange] = True
    return graph.subgraph(~is_ood & ~test), graph.subgraph(after)


def _members(classes: NDArray[np.int64], wanted: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """A random node of each wanted class."""
    order = np.argsort(classes, kind="stable")
    first = np.searchsorted(classes[order], wanted, side="left")
    last = np.searchsorted(classes[order], wanted, side="right")
    return np.asarray(order[rng.integers(first, last)], dtype=np.int64)


def _with_left_out(
    features: NDArray[np.float64],
    edges: NDArray[np.int64],
    classes: NDArray[np.int64],
    *,
    num_known: int,
    seed: int,
) -> Graph:
    """The graph in which only the first ``num_known`` classes are labelled, their nodes split at random."""
    is_ood = classes >= num_known
    return Graph.from_arrays(
        features=features,
        edges=np.hstack([edges, edges[::-1]]),
        labels=np.where(is_ood, -1, classes),
        feature_names=[f"feature_{column}" for column in range(features.shape[1])],
        masks=random_split(~is_ood, seed, train=0.5, val=0.2),
        columns={"is_ood": is_ood, "true_class": classes},
    )
