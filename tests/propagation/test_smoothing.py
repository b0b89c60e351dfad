"""Smoothing and the propagation of scores equal dense products, and so do gradients."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from degem import Graph
from degem.propagation.smoothing import propagate_augmented, propagate_energy, smooth_over_neighbours

PATH = torch.diag(torch.ones(3), 1) + torch.diag(torch.ones(3), -1)  # 0 – 1 – 2 – 3


def sparse(matrix: torch.Tensor) -> sp.csr_array:
    return sp.csr_array(matrix.numpy())


def test_smoothing_equals_the_dense_average(small_graph: Graph) -> None:
    values = np.random.default_rng(0).standard_normal((120, 2)).astype(np.float32)
    average = small_graph.adjacency.toarray() / np.maximum(small_graph.degrees, 1)[:, None]
    expected = values.astype(np.float64)
    for _ in range(3):
        expected = 0.4 * expected + 0.6 * np.where(small_graph.degrees[:, None] > 0, average @ expected, expected)
    smooth = smooth_over_neighbours(small_graph.adjacency, values, weight=0.6, num_steps=3)
    np.testing.assert_allclose(smooth, expected, atol=1e-4)
    np.testing.assert_array_equal(
        smooth_over_neighbours(small_graph.adjacency, values, weight=0.0, num_steps=3), values
    )


def test_a_path_by_hand() -> None:
    energy = torch.tensor([8.0, 0.0, 4.0, -4.0])
    once = torch.tensor([4.0, 3.0, 1.0, 0.0])
    twice = torch.tensor([3.5, 2.75, 1.25, 0.5])
    assert torch.equal(propagate_energy(energy, sparse(PATH), num_steps=1, self_weight=0.5), once)
    assert torch.equal(propagate_energy(energy, sparse(PATH), num_steps=2, self_weight=0.5), twice)


def test_a_node_without_neighbours_keeps_its_energy() -> None:
    adjacency = sparse(torch.block_diag(PATH, torch.zeros(1, 1)))
    energy = torch.tensor([1.0, 1.0, 1.0, 1.0, -7.0])
    assert propagate_energy(energy, adjacency, num_steps=3, self_weight=0.5)[4] == -7


def test_the_gradient_is_that_of_the_dense_product() -> None:
    adjacency = torch.block_diag(PATH, torch.zeros(1, 1))
    degrees = adjacency.sum(dim=1)
    mean = torch.where(degrees[:, None] > 0, adjacency / degrees.clamp(min=1)[:, None], torch.eye(5))
    step = 0.3 * torch.eye(5) + 0.7 * mean
    energy = torch.randn(5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    slope = torch.tensor([1.0, -2.0, 0.5, 3.0, 1.5])
    (found,) = torch.autograd.grad(
        propagate_energy(energy, sparse(adjacency), num_steps=2, self_weight=0.3) @ slope, energy
    )
    torch.testing.assert_close(found, step.T @ (step.T @ slope))


def test_added_edges_are_those_of_a_dense_matrix() -> None:
    scores, group = torch.tensor([1.0, 2.0, 3.0, 5.0]), torch.tensor([True, False, False, True])
    inside = group.float()
    dense = PATH + 1.5 * torch.outer(inside, inside)
    degrees = PATH.sum(dim=1) + 2 * inside
    expected = 0.2 * scores + 0.8 * (dense @ scores) / degrees
    found = propagate_augmented(scores, sparse(PATH), group, num_steps=1, self_weight=0.2, group_weight=1.5)
    torch.testing.assert_close(found, expected)
