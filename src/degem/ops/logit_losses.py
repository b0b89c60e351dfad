"""Losses on class logits that teach a classifier to know what it does not know."""

from __future__ import annotations

import torch
from torch import Tensor


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
