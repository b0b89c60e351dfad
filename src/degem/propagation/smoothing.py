"""Values that borrow from the neighbours: classes, terms of an energy, scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from degem.ops.neighbours import divisors, strengths
from degem.propagation import Columns, choose_propagator


def smooth_over_neighbours(
    adjacency: sp.csr_array, values: NDArray[np.float32], *, weight: float, num_steps: int
) -> NDArray[np.float32]:
    r"""Averaging over neighbours, :math:`v \leftarrow (1 - w)\,v + w\,D^{-1}Av`, repeated; isolated nodes keep theirs.

    Arguments:
        adjacency: The adjacency :math:`A`.
        values: Node values of shape (n, columns); left as they are.
        weight: The weight :math:`w` of the neighbours.
        num_steps: How often.

    Example:
        >>> path = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
        >>> values = np.array([[0], [4], [8]], dtype=np.float32)
        >>> smooth_over_neighbours(path, values, weight=0.5, num_steps=1).ravel().round(3)
        array([2., 4., 6.], dtype=float32)
    """
    if weight == 0:
        return values
    propagator, steps = choose_propagator(2 * values.nbytes), (num_steps,)
    with propagator.keep(adjacency, Columns.of(values), steps, self_weight=1 - weight, weight=weight) as kept:
        smooth: NDArray[np.float32] = kept.rows(slice(0, len(values)))[0]
    isolated = np.diff(adjacency.indptr) == 0
    smooth[isolated] = values[isolated]
    return smooth


def propagate_energy(energy: Tensor, adjacency: sp.csr_array, *, num_steps: int, self_weight: float) -> Tensor:
    r"""Energy propagation, :math:`e^{(k)} = \alpha e^{(k-1)} + (1 - \alpha) D^{-1} A e^{(k-1)}` (Wu et al. 2023).

    Differentiable in the energies. A node without neighbours keeps its energy: :math:`D^{-1}` is not defined there, and
    the authors' program, which puts zero, draws such nodes towards an energy of zero, which is that of an outlier.

    Arguments:
        energy: One energy a node, of shape (n,).
        adjacency: The adjacency :math:`A`, symmetric.
        num_steps: The number of steps :math:`K`.
        self_weight: The weight :math:`\alpha` of the node itself.

    Example:
        >>> path = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
        >>> propagate_energy(torch.tensor([0.0, 4.0, 8.0]), path, num_steps=1, self_weight=0.5)
        tensor([2., 4., 6.])
    """
    energy = _Smooth.apply(energy, adjacency, 1 - self_weight, num_steps)  # type: ignore[no-untyped-call]
    return energy


class _Smooth(torch.autograd.Function):
    """With :math:`P = (1 - w) I + w D^{-1} A`, the gradient is :math:`P^\\top g = D P D^{-1} g`."""

    @staticmethod
    def forward(ctx: Any, energy: Tensor, adjacency: sp.csr_array, weight: float, num_steps: int) -> Tensor:
        ctx.settings = adjacency, weight, num_steps
        return _smooth(energy, *ctx.settings)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None, None]:
        adjacency = ctx.settings[0]
        degrees = torch.from_numpy(divisors(adjacency)).to(gradients[0])
        return _smooth(gradients[0] / degrees, *ctx.settings) * degrees, None, None, None


def _smooth(values: Tensor, adjacency: sp.csr_array, weight: float, num_steps: int) -> Tensor:
    column = values.detach().cpu().numpy()[:, None]
    smooth = smooth_over_neighbours(adjacency, column, weight=weight, num_steps=num_steps)
    return torch.from_numpy(smooth[:, 0]).to(values)


def propagate_augmented(
    scores: Tensor, adjacency: sp.csr_array, group: Tensor, *, num_steps: int, self_weight: float, group_weight: float
) -> Tensor:
    r"""GRASP's propagation: as if every two nodes of a group :math:`G` were joined (Ma et al. 2024).

    .. math:: e^{(k)} = \alpha e^{(k-1)}
        + (1 - \alpha) D_G^{-1} (A + \delta \mathbb{1}_G \mathbb{1}_G^\top) e^{(k-1)},
        \quad D_G = D + |G| \operatorname{diag}(\mathbb{1}_G)

    The new edges are never stored: their product is one sum. A node without neighbours keeps its score.

    Arguments:
        scores: One score a node, of shape (n,).
        adjacency: The adjacency :math:`A`, symmetric.
        group: Which nodes are in :math:`G`, boolean, of shape (n,).
        num_steps: The number of steps :math:`K`.
        self_weight: The weight :math:`\alpha` of the node itself.
        group_weight: The weight :math:`\delta` of the new edges.

    Example:
        >>> empty = sp.csr_array((3, 3), dtype=np.float32)
        >>> group = torch.tensor([True, True, False])
        >>> propagate_augmented(
        ...     torch.tensor([1.0, 3.0, 5.0]), empty, group, num_steps=1, self_weight=0.0, group_weight=1.0
        ... )
        tensor([2., 2., 5.])
    """
    inside = group.to(scores)
    edges = torch.from_numpy(strengths(adjacency)).to(scores)
    degrees = edges + inside.sum() * inside
    for _ in range(num_steps):
        of_edges = edges * _smooth(scores, adjacency, 1.0, 1)
        total = of_edges + group_weight * inside * (inside @ scores)
        mean = torch.where(degrees > 0, total / torch.where(degrees > 0, degrees, 1), scores)
        scores = self_weight * scores + (1 - self_weight) * mean
    return scores
