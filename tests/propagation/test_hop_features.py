"""Hop features equal the equations written out densely."""

import numpy as np
import pytest
import scipy.sparse as sp

from degem import Graph
from degem.propagation.hop_features import hop_features


def dense_operator(graph: Graph, beta: float) -> np.ndarray:
    """S = βI + D^-½ A D^-½, as method and paper write it."""
    a = graph.adjacency.toarray().astype(np.float64)
    degrees = a.sum(axis=1)
    inverse = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    return beta * np.eye(len(a)) + inverse[:, None] * a * inverse[None, :]


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_hops_equal_the_dense_transcription(small_graph: Graph, beta: float) -> None:
    graph = small_graph.replace(adjacency=without_edges_of_the_first(small_graph.adjacency))
    assert graph.degrees[0] == 0
    x = np.asarray(graph.features)
    hops = hop_features(graph.adjacency, x, 3, self_weight=beta)
    expected = x.astype(np.float64)
    for hop in hops:
        np.testing.assert_allclose(hop, expected, rtol=1e-4, atol=1e-5)
        expected = dense_operator(graph, beta) @ expected


def without_edges_of_the_first(adjacency: sp.csr_array) -> sp.csr_array:
    keep = sp.diags_array((np.arange(adjacency.shape[0]) > 0).astype(np.float32))
    kept = sp.csr_array(keep @ adjacency @ keep)
    kept.eliminate_zeros()
    return kept
