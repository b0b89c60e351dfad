"""Both orders of projection and propagation equal the plain dense formula, and so do their gradients."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from degem import Graph
from degem.propagation.hop_features import hop_features
from degem.propagation.hop_products import ProjectedFirst, PropagatedFirst, hop_products, propagation_matrix


@pytest.fixture
def sparse_features() -> sp.csr_array:
    rng = np.random.default_rng(0)
    return sp.csr_array(sp.random_array((120, 90), density=0.02, rng=rng, dtype=np.float32))


def plain_product(graph: Graph, features: np.ndarray, weight: torch.Tensor, hops: range) -> torch.Tensor:
    powers = hop_features(graph.adjacency, np.ascontiguousarray(features), hops.stop - 1, self_weight=0.5)
    return torch.stack([torch.from_numpy(powers[hop]) @ weight[i] for i, hop in enumerate(hops)])


@pytest.mark.parametrize("hops", [range(4), range(1, 2)], ids=str)
@pytest.mark.parametrize("width", [5, 130])
@pytest.mark.parametrize("permuted", [False, True])
def test_products_and_gradients_equal_the_formula(
    small_graph: Graph, sparse_features: sp.csr_array, hops: range, width: int, permuted: bool
) -> None:
    torch.manual_seed(0)
    order = np.random.default_rng(0).permutation(120) if permuted else np.arange(120)
    weight = torch.randn(len(hops), 90, width, requires_grad=True)
    plain = plain_product(small_graph, sparse_features.toarray()[order], weight, hops)
    probe = torch.randn_like(plain)
    slope = torch.autograd.grad((probe * plain).sum(), weight)
    projected = ProjectedFirst(propagation_matrix(small_graph.adjacency, 0.5), sparse_features)
    propagated = PropagatedFirst(small_graph.adjacency, sparse_features.toarray(), 3, 0.5)
    for products in (projected, propagated):
        ours = (products.permuted(order) if permuted else products).times(weight, hops)
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(torch.autograd.grad((probe * ours).sum(), weight), slope, rtol=1e-4, atol=1e-4)


def test_isolated_nodes_keep_a_share_of_themselves() -> None:
    alone = propagation_matrix(sp.csr_array((2, 2), dtype=np.float32), 0.5)
    np.testing.assert_array_equal(alone.toarray(), 0.5 * np.eye(2))


def test_sparse_features_are_projected_first_and_dense_ones_propagated(small_graph: Graph) -> None:
    wide = sp.csr_array(sp.random_array((120, 5000), density=0.002, rng=np.random.default_rng(0), dtype=np.float32))
    assert isinstance(hop_products(small_graph.adjacency, wide, 5, self_weight=0.5), ProjectedFirst)
    full = sp.csr_array(np.ones((120, 50), dtype=np.float32))
    assert isinstance(hop_products(small_graph.adjacency, full, 5, self_weight=0.5), PropagatedFirst)
    assert isinstance(hop_products(small_graph.adjacency, full.toarray(), 5, self_weight=0.5), PropagatedFirst)
