from __future__ import annotations

import torch

from degem.ops.score_propagation import propagate_augmented, propagate_energy

PATH = torch.diag(torch.ones(3), 1) + torch.diag(torch.ones(3), -1)  # 0 – 1 – 2 – 3


def test_a_path_by_hand() -> None:
    energy = torch.tensor([8.0, 0.0, 4.0, -4.0])
    once = torch.tensor([4.0, 3.0, 1.0, 0.0])
    twice = torch.tensor([3.5, 2.75, 1.25, 0.5])
    adjacency = PATH.to_sparse_csr()
    assert torch.equal(propagate_energy(energy, adjacency, num_steps=1, self_weight=0.5), once)
    assert torch.equal(propagate_energy(energy, adjacency, num_steps=2, self_weight=0.5), twice)


def test_a_node_without_neighbours_keeps_its_energy() -> None:
    adjacency = torch.block_diag(PATH, torch.zeros(1, 1)).to_sparse_csr()
    energy = torch.tensor([1.0, 1.0, 1.0, 1.0, -7.0])
    assert propagate_energy(energy, adjacency, num_steps=3, self_weight=0.5)[4] == -7


def test_the_gradient_is_that_of_the_dense_product() -> None:
    energy = torch.randn(4, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    adjacency = PATH.double().to_sparse_csr()
    assert torch.autograd.gradcheck(lambda e: propagate_energy(e, adjacency, num_steps=2, self_weight=0.3), energy)


def test_added_edges_are_those_of_a_dense_matrix() -> None:
    scores, group = torch.tensor([1.0, 2.0, 3.0, 5.0]), torch.tensor([True, False, False, True])
    inside = group.float()
    dense = PATH + 1.5 * torch.outer(inside, inside)
    degrees = PATH.sum(dim=1) + 2 * inside
    expected = 0.2 * scores + 0.8 * (dense @ scores) / degrees
    found = propagate_augmented(scores, PATH.to_sparse_csr(), group, num_steps=1, self_weight=0.2, group_weight=1.5)
    torch.testing.assert_close(found, expected)
