"""The shifts of a manipulated graph: the same nodes wired anew, or with features between those of two others."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.graph import Graph
from degem.ops.features import Features

WITHIN, BETWEEN = 1.5, 0.5  # times the density of the graph


def structure_shift(graph: Graph, rng: np.random.Generator, *, stored_entries: int | None = None) -> Graph:
    r"""The same features on the edges of a stochastic block model.

    C blocks of :math:`\lfloor n/C \rfloor` nodes (the last takes the rest), edge probability :math:`1.5\,d` within and
    :math:`0.5\,d` between blocks, where :math:`d = |E| / (n (n - 1))` is the density of the graph (Wu et al.,
    *GNNSafe*, 2023). The authors' program counts in :math:`E` the pairs that the dataset's loader hands out: where
    links are stored one way, the random graph is sparser than the symmetric one.

    Arguments:
        graph: The graph, with labels; not changed.
        rng: The source of randomness.
        stored_entries: The number :math:`|E|` of ordered pairs; by default both ways of each edge.
    """
    num_nodes, num_classes = graph.num_nodes, graph.num_classes
    entries = graph.adjacency.nnz if stored_entries is None else stored_entries
    density = entries / (num_nodes * (num_nodes - 1))
    size = num_nodes // num_classes
    sizes = np.full(num_classes, size)
    sizes[-1] += num_nodes - size * num_classes
    return graph.replace(adjacency=block_model(sizes, WITHIN * density, BETWEEN * density, rng))


def block_model(sizes: NDArray[np.int64], within: float, between: float, rng: np.random.Generator) -> sp.csr_array:
    """The adjacency of a stochastic block model, drawn without anything dense in n × n.

    Of each pair of blocks the number of edges is binomial and their places are uniform among distinct pairs of nodes,
    which is the same law as one coin a pair.

    Arguments:
        sizes: Nodes in each block.
        within: Edge probability inside a block.
        between: Edge probability across two blocks.
        rng: The source of randomness.

    Example:
        >>> block_model(np.array([2, 2]), 1.0, 0.0, np.random.default_rng(0)).toarray()
        array([[0., 1., 0., 0.],
               [1., 0., 0., 0.],
               [0., 0., 0., 1.],
               [0., 0., 1., 0.]], dtype=float32)
    """
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows: list[NDArray[np.int64]] = []
    columns: list[NDArray[np.int64]] = []
    for first in range(len(sizes)):
        for second in range(first, len(sizes)):
            if first == second:
                row, column = _pairs_within(int(sizes[first]), within, rng)
            else:
                row, column = _pairs_across(int(sizes[first]), int(sizes[second]), between, rng)
            rows.append(row + starts[first])
            columns.append(column + starts[second])
    row, column = np.concatenate(rows), np.concatenate(columns)
    shape = (int(starts[-1]), int(starts[-1]))
    upper = sp.coo_array((np.ones(len(row), dtype=np.float32), (row, column)), shape=shape).tocsr()
    symmetric = sp.csr_array(upper + upper.T)
    symmetric.sort_indices()
    return symmetric


def _pairs_within(size: int, probability: float, rng: np.random.Generator) -> tuple[NDArray[np.int64], ...]:
    """Pairs i < j: entry k of the upper triangle, counted row by row from the end so that a root gives the row."""
    total = size * (size - 1) // 2
    chosen = _distinct(total, probability, rng)
    from_end = total - 1 - chosen
    back = ((np.sqrt(8.0 * from_end + 1) - 1) / 2).astype(np.int64)
    back -= back * (back + 1) // 2 > from_end  # the square root may round up at a triangular number
    return size - 2 - back, size - 1 - (from_end - back * (back + 1) // 2)


def _pairs_across(
    first: int, second: int, probability: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], ...]:
    chosen = _distinct(first * second, probability, rng)
    return chosen // second, chosen % second


def _distinct(total: int, probability: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """A binomial number of distinct indices below ``total``."""
    count = int(rng.binomial(total, min(probability, 1.0)))
    return rng.choice(total, size=count, replace=False, shuffle=False)


def feature_shift(graph: Graph, rng: np.random.Generator) -> Graph:
    r"""The same edges with features :math:`w\,x_i + (1-w)\,x_j` for random nodes i, j and :math:`w \sim U(0, 1)`.

    (Wu et al., *GNNSafe*, 2023.)

    Arguments:
        graph: The graph; not changed.
        rng: The source of randomness.

    Example:
        >>> graph = Graph.from_arrays(features=np.array([[0.0], [1.0]]), edges=[(0, 1)])
        >>> shifted = feature_shift(graph, np.random.default_rng(0)).features
        >>> bool((shifted >= 0).all() and (shifted <= 1).all())
        True
    """
    return graph.replace(features=mixed_rows(graph.features, graph.num_nodes, rng))


def mixed_rows(features: Features, count: int, rng: np.random.Generator) -> Features:
    """``count`` rows, each between two random rows of ``features``."""
    first, second = rng.integers(features.shape[0], size=(2, count))
    weight = rng.random(count, dtype=np.float32)
    if isinstance(features, sp.csr_array):
        near, far = sp.diags_array(weight, dtype=np.float32), sp.diags_array(1 - weight, dtype=np.float32)
        return sp.csr_array(near @ features[first] + far @ features[second])
    return np.asarray(weight[:, None] * features[first] + (1 - weight)[:, None] * features[second])
