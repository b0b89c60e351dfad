"""Synthetic graphs of a chosen homophily, with the features of a real one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from degem.graph import Graph

NUM_CLASSES, EDGES_PER_NODE = 5, 2


def homophily_graph(base: Graph, homophily: float, rng: np.random.Generator) -> Graph:
    r"""A graph of edge homophily h: features drawn from ``base``, edges by class-compatible preferential attachment.

    Nodes arrive in random order and bring two edges each. An edge of a node of class y chooses a class, y with
    probability h and any other with :math:`(1-h)/(C-1)`, then an earlier node of it with probability proportional to
    1 + degree (after Zhu et al., *Beyond homophily in graph neural networks*, 2020). The five largest classes of
    ``base`` take part, each with as many nodes as the fifth has.

    Arguments:
        base: The graph that features come from, such as Cora.
        homophily: The homophily h, between 0 and 1.
        rng: The source of randomness.
    """
    counts = np.bincount(base.labels[base.labelled])
    classes = np.sort(np.argsort(-counts, kind="stable")[:NUM_CLASSES])
    per_class = int(counts[classes].min())
    chosen = [rng.permutation(np.flatnonzero(base.labels == label))[:per_class] for label in classes]
    nodes = np.concatenate(chosen)
    labels = np.repeat(np.arange(len(classes)), per_class)
    order = rng.permutation(len(nodes))
    nodes, labels = nodes[order], labels[order]
    edges = attach(labels, homophily, EDGES_PER_NODE, rng)
    both_ways = np.concatenate([edges, edges[:, ::-1]])
    return Graph.from_arrays(features=base.features[nodes], edges=both_ways, labels=labels)


def attach(
    labels: NDArray[np.int64], homophily: float, edges_per_node: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Edges (earlier, later) of nodes that arrive in the order of ``labels``."""
    num_classes = int(labels.max()) + 1
    weight = np.ones(len(labels))
    edges: set[tuple[int, int]] = set()
    for node in range(1, len(labels)):
        odds = np.full(num_classes, (1 - homophily) / max(num_classes - 1, 1))
        odds[labels[node]] = homophily
        for label in rng.choice(num_classes, size=edges_per_node, p=odds / odds.sum()):
            earlier = np.flatnonzero(labels[:node] == label)
            if len(earlier) == 0:
                continue
            chances = weight[earlier]
            other = int(rng.choice(earlier, p=chances / chances.sum()))
            if (other, node) not in edges:
                edges.add((other, node))
                weight[other] += 1
                weight[node] += 1
    return np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
