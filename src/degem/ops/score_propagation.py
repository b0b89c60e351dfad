"""Scores that borrow from the neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

from degem.ops.adjacency import symmetric_product


def propagate_energy(energy: Tensor, adjacency: Tensor, *, num_steps: int, self_weight: float) -> Tensor:
    r"""Energy propagation, :math:`e^{(k)} = \alpha e^{(k-1)} + (1 - \alpha) D^{-1} A e^{(k-1)}` (Wu et al. 2023).

    A node without neighbours keeps its energy: :math:`D^{-1}` is not defined there, and the authors' program, which
    puts zero, draws such nodes towards an energy of zero, which is that of an outlier.

    Arguments:
        energy: One energy a node, of shape (n,).
        adjacency: The adjacency :math:`A`, symmetric, as a sparse CSR tensor.
        num_steps: The number of steps :math:`K`.
        self_weight: The weight :math:`\alpha` of the node itself.

    Example:
        >>> path = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]).to_sparse_csr()
        >>> propagate_energy(torch.tensor([0.0, 4.0, 8.0]), path, num_steps=1, self_weight=0.5)
        tensor([2., 4., 6.])
    """
    degrees = adjacency.crow_indices().diff().to(energy.dtype)
    for _ in range(num_steps):
        total = symmetric_product(adjacency, energy[:, None])[:, 0]
        mean = torch.where(degrees > 0, total / degrees.clamp(min=1), energy)
        energy = self_weight * energy + (1 - self_weight) * mean
    return energy


def propagate_augmented(
    scores: Tensor, adjacency: Tensor, group: Tensor, *, num_steps: int, self_weight: float, group_weight: float
) -> Tensor:
    r"""GRASP's propagation: as if every two nodes of a group :math:`G` were joined (Ma et al. 2024).

    .. math:: e^{(k)} = \alpha e^{(k-1)}
        + (1 - \alpha) D_G^{-1} (A + \delta \mathbb{1}_G \mathbb{1}_G^\top) e^{(k-1)},
        \quad D_G = D + |G| \operatorname{diag}(\mathbb{1}_G)

    The new edges are never stored: their product is one sum. A node without neighbours keeps its score.

    Arguments:
        scores: One score a node, of shape (n,).
        adjacency: The adjacency :math:`A`, symmetric, as a sparse CSR tensor.
        group: Which nodes are in :math:`G`, boolean, of shape (n,).
        num_steps: The number of steps :math:`K`.
        self_weight: The weight :math:`\alpha` of the node itself.
        group_weight: The weight :math:`\delta` of the new edges.

    Example:
        >>> empty = torch.zeros(3, 3).to_sparse_csr()
        >>> group = torch.tensor([True, True, False])
        >>> propagate_augmented(
        ...     torch.tensor([1.0, 3.0, 5.0]), empty, group, num_steps=1, self_weight=0.0, group_weight=1.0
        ... )
        tensor([2., 2., 5.])
    """
    inside = group.to(scores.dtype)
    degrees = adjacency.crow_indices().diff().to(scores.dtype) + inside.sum() * inside
    for _ in range(num_steps):
        total = symmetric_product(adjacency, scores[:, None])[:, 0] + group_weight * inside * (inside @ scores)
        mean = torch.where(degrees > 0, total / degrees.clamp(min=1), scores)
        scores = self_weight * scores + (1 - self_weight) * mean
    return scores
