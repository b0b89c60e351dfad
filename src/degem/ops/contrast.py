"""Contrastive losses that train an encoder without labels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

BLOCK = 1024  # rows of similarities at a time


def infomax_loss(positive: Tensor, negative: Tensor) -> Tensor:
    r"""Deep Graph Infomax: :math:`-\frac{1}{2N}\big(\sum_i \log D(h_i, s) + \sum_j \log(1 - D(h'_j, s))\big)`.

    Veličković et al., *Deep Graph Infomax*, ICLR 2019.

    Arguments:
        positive: Logits of :math:`D(h_i, s)` for nodes of the graph.
        negative: Logits of :math:`D(h'_j, s)` for nodes of its corrupted copy.

    Example:
        >>> infomax_loss(torch.zeros(3), torch.zeros(3))
        tensor(0.6931)
    """
    return (F.softplus(-positive).mean() + F.softplus(negative).mean()) / 2


def grace_loss(first: Tensor, second: Tensor, temperature: float = 0.5) -> Tensor:
    r"""GRACE: a node's two views attract, all other nodes of both views repel.

    :math:`\ell(u_i, v_i) = -\log \frac{e^{\theta(u_i, v_i)/\tau}}{e^{\theta(u_i, v_i)/\tau} + \sum_{k \ne i}
    (e^{\theta(u_i, v_k)/\tau} + e^{\theta(u_i, u_k)/\tau})}` with cosine :math:`\theta`, averaged over both directions.
    Zhu et al., *Deep Graph Contrastive Representation Learning*, 2020.

    Arguments:
        first: Projected latents :math:`u` of the first view.
        second: Projected latents :math:`v` of the second view.
        temperature: The temperature :math:`\tau`.

    Example:
        >>> bool(grace_loss(torch.eye(3), torch.eye(3)) < grace_loss(torch.eye(3), torch.eye(3).flip(0)))
        True
    """
    u, v = F.normalize(first), F.normalize(second)
    attraction = (u * v).sum(dim=1).mean() / temperature
    repulsion: Tensor = _Repulsion.apply(torch.cat([u, v]) / temperature**0.5)  # type: ignore[no-untyped-call]
    return repulsion - attraction


class _Repulsion(torch.autograd.Function):
    r"""The mean of :math:`\log \sum_{k \ne i} e^{z_i^\top z_k}` over all rows :math:`z_i`.

    Similarities are symmetric and made a pair of blocks at a time, in the backward pass anew, so that no N × N matrix
    is held. Those of unit vectors are bounded: no shift is needed before the exponential.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        totals = torch.zeros(len(z), device=z.device)
        for rows, columns, similarity in _block_pairs(z):
            totals[rows] += similarity.sum(dim=1)
            if rows != columns:
                totals[columns] += similarity.sum(dim=0)
        ctx.save_for_backward(z, totals)
        return totals.log().mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tensor:
        z, totals = ctx.saved_tensors
        slope, share = torch.zeros_like(z), 1 / totals
        for rows, columns, similarity in _block_pairs(z):
            similarity *= share[rows, None] + share[columns]
            slope[rows].addmm_(similarity, z[columns])
            if rows != columns:
                slope[columns].addmm_(similarity.T, z[rows])
        return slope.mul_(gradients[0] / len(z))


def _block_pairs(z: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """Pairs of blocks of rows, each pair once, with :math:`e^{z_i^\top z_k}`, which is 0 for a row with itself."""
    blocks = [slice(start, min(start + BLOCK, len(z))) for start in range(0, len(z), BLOCK)]
    for rows, columns in itertools.combinations_with_replacement(blocks, 2):
        similarity = torch.mm(z[rows], z[columns].T).exp_()
        if rows == columns:
            similarity.fill_diagonal_(0)
        yield rows, columns, similarity


def sugrl_loss(
    anchor: Tensor, structural: Tensor, neighbour: Tensor, negative: Tensor, margin: float = 0.2, bound: float = 0.4
) -> Tensor:
    r"""SUGRL: triplet losses towards two positives, and an upper bound on the distance of the negative.

    :math:`\max(0, d(a, p_s)^2 - d(a, n)^2 + \alpha) + \max(0, d(a, p_n)^2 - d(a, n)^2 + \alpha)
    - \min(0, d(a, p_s)^2 - d(a, n)^2 + \alpha + \beta)`.
    Mo et al., *Simple Unsupervised Graph Representation Learning*, AAAI 2022.

    Arguments:
        anchor: Embeddings of a node's own features :math:`a`.
        structural: Embeddings from the graph encoder :math:`p_s`.
        neighbour: Mean embeddings of neighbours :math:`p_n`.
        negative: Row-shuffled anchors :math:`n`.
        margin: The margin :math:`\alpha`.
        bound: The width :math:`\beta` of the allowed band.

    Example:
        >>> sugrl_loss(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, 2), torch.full((1, 2), 0.5))
        tensor(0.)
    """
    away = (anchor - negative).square().sum(dim=1)
    near_structure = (anchor - structural).square().sum(dim=1)
    near_neighbour = (anchor - neighbour).square().sum(dim=1)
    triplets = F.relu(near_structure - away + margin) + F.relu(near_neighbour - away + margin)
    upper = F.relu(away - near_structure - margin - bound)
    return (triplets + upper).mean()
