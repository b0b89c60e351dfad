"""Losses and doubts of Dirichlet distributions over classes."""

from __future__ import annotations

import torch
from torch import Tensor


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
