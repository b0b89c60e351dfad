"""What a fit of DeGEM will take, from the sizes of the graph."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import scipy.sparse as sp

from degem.detectors.cost import Cost
from degem.detectors.degem.encoder_training import MAX_CORRUPTIONS, MAX_POOL
from degem.detectors.degem.encoding import BANK
from degem.detectors.degem.energies.affinity import EMBEDDING_DIM, NUM_CRITICS, NUM_REFERENCES
from degem.detectors.degem.hop_inputs import KEPT_BYTES
from degem.graph import Graph
from degem.ops.mapped import is_mapped
from degem.propagation import choose_propagator
from degem.propagation.propagator import LINE

if TYPE_CHECKING:
    from degem.detectors.degem.detector import DeGEM

# Measured by benchmarks/scale.py, on two cores.
PROPAGATED_PER_SECOND, MULTIPLIED_PER_SECOND = 1.5e9, 3e10
ENCODER_STEP_SECONDS, TERM_SECONDS = 0.015, 3.0
PROCESS_MIB = 600.0
NUM_TERMS, SMOOTHING_STEPS = 7, 8
SCORED = 2  # times that a fit scores the graph: for the scale of the terms, and to calibrate
COPIES = 6  # of terms and class probabilities while they are smoothed


def fit_cost(settings: DeGEM, graph: Graph, hops: tuple[int, ...]) -> Cost:
    """Peak memory, temporary files and time of a fit.

    Arguments:
        settings: The parameters.
        graph: The graph to fit on.
        hops: The hops that are used.
    """
    nodes = graph.num_nodes
    width = min(graph.features.shape[1], settings.projection_dim)
    entries, values = graph.adjacency.nnz, _num_values(graph)
    store, per_node = 4 * len(hops) * nodes * width, 4 * len(hops) * width
    shares = 4 * (hops[-1] + 1) * nodes * max(graph.num_classes, 1)
    propagator = choose_propagator(store, memory_budget=settings.memory_budget)
    on_disk, at_once = propagator.out_of_core, propagator.columns_at_once(nodes, width)
    steps = settings.num_epochs * (settings.batch_size or nodes)
    memory = (
        _graph_bytes(graph, values)
        + nodes * max(8 * at_once, COPIES * 4 * (NUM_TERMS + graph.num_classes))  # one after the other
        + (0 if on_disk else max(store, shares))
        + 4 * per_node * min(nodes, 2 * MAX_POOL)  # the pool, and what the encoder makes of it
        + per_node * min(steps, 4 * MAX_POOL)  # negatives
        + min(4 * nodes * width, KEPT_BYTES)
    )
    passes = 1 + min(max(math.ceil(steps / nodes), 1), MAX_CORRUPTIONS)
    is_dense = not isinstance(graph.features, sp.csr_array)
    energies = energy_products(width, graph.features.shape[1] if is_dense else 0)
    narrow = hops[-1] + 2 * SMOOTHING_STEPS  # hops of a few columns, which cost a whole line: class shares, terms
    seconds = (
        passes * (hops[-1] * entries * width / PROPAGATED_PER_SECOND + 2 * values * width / MULTIPLIED_PER_SECOND)
        + narrow * entries * LINE * math.ceil(max(graph.num_classes, 1) / LINE) / PROPAGATED_PER_SECOND
        + SCORED * 2 * nodes * (len(hops) * width * settings.latent_dim + energies) / MULTIPLIED_PER_SECOND
        + settings.num_epochs * ENCODER_STEP_SECONDS
        + TERM_SECONDS
    )
    return Cost(PROCESS_MIB + memory / 2**20, max(store, shares) / 2**20 if on_disk else 0.0, seconds)


def energy_products(width: int, num_columns: int) -> int:
    """Multiplications that the energies of a node take beside its latent.

    Arguments:
        width: The number of projected columns r.
        num_columns: The number of columns of a table, whose rows are held against others; 0 for words.
    """
    return NUM_CRITICS * EMBEDDING_DIM * (3 * width + 2 * NUM_REFERENCES) + BANK * num_columns


def _num_values(graph: Graph) -> int:
    """Stored feature values."""
    return int(graph.features.nnz if isinstance(graph.features, sp.csr_array) else graph.features.size)


def _graph_bytes(graph: Graph, values: int) -> int:
    """What the graph takes in memory; features on disk are let go of as they are read."""
    edges = graph.adjacency.indices.nbytes + graph.adjacency.indptr.nbytes + len(graph.labels) * 40
    edges += graph.adjacency.nnz * graph.adjacency.data.strides[0]
    if isinstance(graph.features, sp.csr_array):
        return edges + 8 * values
    return edges + (0 if is_mapped(graph.features) else 4 * values)
