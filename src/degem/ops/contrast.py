"""Contrastive losses that train an encoder without labels."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


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
    return (_info_nce(u, v, temperature) + _info_nce(v, u, temperature)) / 2


def _info_nce(anchor: Tensor, other: Tensor, temperature: float) -> Tensor:
    across = anchor @ other.T / temperature
    within = anchor @ anchor.T / temperature
    within = within.masked_fill(torch.eye(len(anchor), dtype=torch.bool, device=anchor.device), -torch.inf)
    return (torch.logsumexp(torch.cat([across, within], dim=1), dim=1) - across.diagonal()).mean()


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
