"""Energies and the losses that train them, losses on logits or Dirichlets, and contrastive losses without labels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

BLOCK = 1024  # rows of similarities at a time


def contrastive_divergence(data: Tensor, chains: Tensor, penalty: float) -> Tensor:
    r"""Maximum likelihood of an energy model, from data and samples of the model.

    :math:`\overline{f(h)} - \overline{f(\tilde h)} + c\,(\overline{f(h)^2} + \overline{f(\tilde h)^2})`: the first two
    terms have the gradient of the negative log-likelihood (Du & Mordatch 2019), the penalty keeps the scale.

    Arguments:
        data: Energies :math:`f(h)` of data.
        chains: Energies :math:`f(\tilde h)` of Langevin samples.
        penalty: The weight :math:`c`.

    Example:
        >>> contrastive_divergence(torch.tensor([1.0]), torch.tensor([3.0]), penalty=0.0)
        tensor(-2.)
    """
    return data.mean() - chains.mean() + penalty * (data.square().mean() + chains.square().mean())


def logit_energy(logits: Tensor, temperature: float = 1.0) -> Tensor:
    r"""The energy of a classifier, :math:`-T \log \sum_y e^{g_y / T}` (Liu et al. 2020).

    Arguments:
        logits: Class logits :math:`g`, of shape (n, C).
        temperature: The temperature :math:`T`.

    Example:
        >>> logit_energy(torch.zeros(1, 1))
        tensor([-0.])
    """
    return -temperature * torch.logsumexp(logits / temperature, dim=1)


def energy_readout(latents: Tensor, energies: Tensor, energy_weight: float) -> Tensor:
    r"""The summary :math:`s = \sum_i (\gamma \bar p_i + (1 - \gamma)/N) h_i`, :math:`\bar p = \mathrm{softmax}(-f)`.

    Arguments:
        latents: Latents :math:`h`, of shape :math:`(N, d)`.
        energies: Their energies :math:`f`, of shape :math:`(N,)`.
        energy_weight: The weight :math:`\gamma`; 0 is the plain mean.

    Example:
        >>> energy_readout(torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 0.0]), 1.0)
        tensor([0.5000])
    """
    weights = energy_weight * torch.softmax(-energies, dim=0) + (1 - energy_weight) / len(latents)
    return weights @ latents


def uniform_cross_entropy(logits: Tensor) -> Tensor:
    r"""The cross-entropy from the uniform distribution, :math:`\frac1n \sum_i (\log \sum_y e^{g_{iy}} - \bar g_i)`.

    Outlier exposure (Hendrycks et al. 2019) adds it for nodes known to be OOD. Its least value is :math:`\log C`.

    Arguments:
        logits: Class logits :math:`g`, of shape (n, C).

    Example:
        >>> uniform_cross_entropy(torch.zeros(1, 2))
        tensor(0.6931)
    """
    return (torch.logsumexp(logits, dim=1) - logits.mean(dim=1)).mean()


def energy_margin_loss(inside: Tensor, outside: Tensor, *, margin_in: float, margin_out: float) -> Tensor:
    r"""Squared hinges that part two groups' energies (Liu et al. 2020).

    .. math:: \overline{\max(0, e_{in} - m_{in})^2} + \overline{\max(0, m_{out} - e_{out})^2}

    Arguments:
        inside: Energies :math:`e_{in}` of in-distribution nodes.
        outside: Energies :math:`e_{out}` of nodes known to be OOD.
        margin_in: What ID energies should stay below, :math:`m_{in}`.
        margin_out: What OOD energies should stay above, :math:`m_{out}`.

    Example:
        >>> energy_margin_loss(torch.tensor([-3.0]), torch.tensor([-2.0]), margin_in=-5.0, margin_out=-1.0)
        tensor(5.)
    """
    return (inside - margin_in).relu().square().mean() + (margin_out - outside).relu().square().mean()


def bounded_uniform_loss(logits: Tensor, *, bound_share: float) -> Tensor:
    r"""NodeSafe's loss: logit vectors of even length and even sum (Yang et al. 2025).

    .. math:: \lambda_1 \frac{\operatorname{Var}_i \lVert g_i \rVert}{\overline{\lVert g \rVert}}
        + (1 - \lambda_1) \frac{\operatorname{Var}_i \Sigma_y g_{iy}}{|\overline{\Sigma_y g_y}|}

    The denominators carry no gradient. The authors' program divides the second term by the signed mean, so that a
    negative one rewards variance; here it is the absolute value.

    Arguments:
        logits: Class logits :math:`g` of the training nodes, of shape (n, C).
        bound_share: The share :math:`\lambda_1` of the first term.

    Example:
        >>> bounded_uniform_loss(torch.tensor([[3.0, 4.0], [4.0, 3.0]]), bound_share=0.9)
        tensor(0.)
    """
    lengths: Tensor = torch.linalg.vector_norm(logits, dim=1)
    sums = logits.sum(dim=1)
    bounded = lengths.var() / lengths.mean().detach().clamp(min=1e-6)
    uniform = sums.var() / sums.mean().abs().detach().clamp(min=1e-6)
    return bound_share * bounded + (1 - bound_share) * uniform


def uncertain_cross_entropy(alpha: Tensor, labels: Tensor) -> Tensor:
    r"""The expected cross-entropy under each Dirichlet, :math:`\psi(\sum_c \alpha_c) - \psi(\alpha_y)`, one a row.

    Arguments:
        alpha: Dirichlet parameters :math:`\alpha`, of shape (n, C).
        labels: The classes :math:`y`.

    Example:
        >>> uncertain_cross_entropy(torch.ones(1, 2), torch.tensor([0]))
        tensor([1.0000])
    """
    return alpha.sum(dim=1).digamma() - alpha.gather(1, labels[:, None])[:, 0].digamma()


def squared_error_risk(alpha: Tensor, labels: Tensor) -> Tensor:
    r"""The expected squared error under each Dirichlet (Sensoy et al. 2018), one a row.

    .. math:: \sum_c (y_c - p_c)^2 + \frac{p_c (1 - p_c)}{S + 1}, \quad p = \alpha / S, \quad S = \sum_c \alpha_c

    Arguments:
        alpha: Dirichlet parameters :math:`\alpha`, of shape (n, C).
        labels: The classes.

    Example:
        >>> squared_error_risk(torch.ones(1, 2), torch.tensor([0]))
        tensor([0.6667])
    """
    strength = alpha.sum(dim=1, keepdim=True)
    p = alpha / strength
    target = torch.nn.functional.one_hot(labels, alpha.shape[1])
    return ((target - p).square() + p * (1 - p) / (strength + 1)).sum(dim=1)


def vacuity(alpha: Tensor) -> Tensor:
    r"""The lack of evidence, :math:`C / \sum_c \alpha_c`: 1 without any, towards 0 with much.

    Arguments:
        alpha: Dirichlet parameters :math:`\alpha`, of shape (n, C).

    Example:
        >>> vacuity(torch.tensor([[1.0, 1.0], [1.0, 3.0]]))
        tensor([1.0000, 0.5000])
    """
    return alpha.shape[1] / alpha.sum(dim=1)


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
