"""The fast propagation equals the equations written out densely."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from degem.ops.propagation import MANY_VALUES, average, hop_features, propagate


def random_adjacency(num_nodes: int, seed: int) -> sp.csr_array:
    half = np.triu(np.random.default_rng(seed).random((num_nodes, num_nodes)) < 0.1, 1)
    return sp.csr_array((half | half.T).astype(np.float32))


def dense_operator(adjacency: sp.csr_array, beta: float) -> np.ndarray:
    """S = βI + D^-½ A D^-½, as method and paper write it."""
    a = adjacency.toarray()
    degrees = a.sum(axis=1)
    inverse = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    return beta * np.eye(len(a)) + inverse[:, None] * a * inverse[None, :]


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_hops_equal_the_dense_transcription(beta: float) -> None:
    num_nodes = 60
    adjacency = random_adjacency(num_nodes, seed=1)
    assert set(np.diff(adjacency.indptr) % 4) == {0, 1, 2, 3}  # neighbours are taken one, two and four at a time
    x = np.random.default_rng(2).standard_normal((num_nodes, 5)).astype(np.float32)
    hops = hop_features(adjacency, x, 3, self_weight=beta)
    expected = x.astype(np.float64)
    for hop in range(4):
        np.testing.assert_allclose(hops[hop], expected, rtol=1e-4, atol=1e-5)
        expected = dense_operator(adjacency, beta) @ expected


def test_values_beyond_the_caches_are_those_of_the_plain_product() -> None:
    nodes, width = MANY_VALUES // 64 + 1, 64
    ends = np.random.default_rng(0).integers(nodes, size=(2, 3 * nodes))
    half = sp.coo_array((np.ones(3 * nodes, dtype=np.float32), ends), shape=(nodes, nodes))
    adjacency = sp.csr_array(half + half.T)
    adjacency.data[:] = 1
    x = np.random.default_rng(1).random((nodes, width), dtype=np.float32)
    expected = adjacency @ x / np.maximum(np.diff(adjacency.indptr), 1)[:, None]
    np.testing.assert_allclose(average(adjacency, x, self_weight=0.0), expected, rtol=1e-5, atol=1e-6)


def test_isolated_nodes_and_empty_graphs() -> None:
    x = np.ones((3, 2), dtype=np.float32)
    np.testing.assert_array_equal(propagate(sp.csr_array((3, 3), dtype=np.float32), x, self_weight=0.5), 0.5 * x)


def test_threads_do_not_change_the_result() -> None:
    adjacency = random_adjacency(300, seed=3)
    x = np.random.default_rng(4).standard_normal((300, 17)).astype(np.float32)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        single = propagate(adjacency, x, self_weight=0.3)
        torch.set_num_threads(2)
        np.testing.assert_array_equal(propagate(adjacency, x, self_weight=0.3), single)
    finally:
        torch.set_num_threads(before)


def test_input_is_left_as_it_was() -> None:
    adjacency, x = random_adjacency(10, seed=5), np.ones((10, 2), dtype=np.float32)
    propagate(adjacency, x, self_weight=1.0)
    np.testing.assert_array_equal(x, 1)
