"""The mean over neighbours equals the plain product."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from degem.ops.neighbours import average, strengths


def random_adjacency(num_nodes: int, seed: int) -> sp.csr_array:
    half = np.triu(np.random.default_rng(seed).random((num_nodes, num_nodes)) < 0.1, 1)
    return sp.csr_array((half | half.T).astype(np.float32))


@pytest.mark.parametrize(("self_weight", "weight"), [(0.0, 1.0), (0.5, 1.0), (0.3, 0.7)])
def test_the_mean_is_that_of_the_plain_product(self_weight: float, weight: float) -> None:
    adjacency = random_adjacency(60, seed=1)
    x = np.random.default_rng(2).standard_normal((60, 5)).astype(np.float32)
    expected = self_weight * x + weight * (adjacency @ x) / np.diff(adjacency.indptr)[:, None]
    found = average(adjacency, x, self_weight=self_weight, weight=weight)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_isolated_nodes_keep_a_share_of_themselves() -> None:
    x = np.ones((3, 2), dtype=np.float32)
    np.testing.assert_array_equal(average(sp.csr_array((3, 3), dtype=np.float32), x, self_weight=0.5), 0.5 * x)


def test_threads_do_not_change_the_result() -> None:
    adjacency = random_adjacency(300, seed=3)
    x = np.random.default_rng(4).standard_normal((300, 17)).astype(np.float32)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        single = average(adjacency, x, self_weight=0.3)
        torch.set_num_threads(2)
        np.testing.assert_array_equal(average(adjacency, x, self_weight=0.3), single)
    finally:
        torch.set_num_threads(before)


def test_input_is_left_as_it_was() -> None:
    adjacency, x = random_adjacency(10, seed=5), np.ones((10, 2), dtype=np.float32)
    average(adjacency, x, self_weight=1.0)
    np.testing.assert_array_equal(x, 1)


@pytest.mark.parametrize("rows", [None, np.array([3, 50, 7])])
def test_weights_weigh(rows: np.ndarray | None) -> None:
    adjacency = random_adjacency(60, seed=1)
    half = sp.triu(adjacency).tocoo()
    half.data = np.random.default_rng(0).random(half.nnz).astype(np.float32)
    weighted = sp.csr_array(half + half.T)
    x = np.random.default_rng(2).standard_normal((60, 5)).astype(np.float32)
    expected = 0.3 * x + 0.7 * (weighted @ x) / weighted.sum(axis=1)[:, None]
    found = average(weighted, x, self_weight=0.3, weight=0.7, rows=rows)
    np.testing.assert_allclose(found, expected if rows is None else expected[rows], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(strengths(weighted), weighted.sum(axis=1))


def test_equal_weights_are_none() -> None:
    adjacency = random_adjacency(60, seed=1)
    x = np.random.default_rng(2).standard_normal((60, 5)).astype(np.float32)
    np.testing.assert_allclose(
        average(sp.csr_array(adjacency * np.float32(3)), x, self_weight=0.3),
        average(adjacency, x, self_weight=0.3),
        rtol=1e-5,
    )
