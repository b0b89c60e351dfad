"""What the classes say: how far a node is from every class."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from degem.detectors.degem.energies.base import EnergyTerm, TrainingRows
from degem.detectors.degem.hop_batch import HopBatch, Latent
from degem.ops.estimates import fit_logistic
from degem.ops.losses import logit_energy

PENALTY, PRIOR = 3e-4, 0.02


class ClassEnergy(EnergyTerm):
    r"""The energy :math:`-\log\sum_y e^{g_y}` of the logits of a linear probe on hop directions (Liu et al. 2020).

    Arguments:
        width: The number of hops times the number of projected feature columns.
        num_classes: The number of classes C, at least 2.
    """

    name = "classes"
    smoothed = True

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.probe = nn.Linear(width, num_classes)

    @torch.no_grad()
    def fit(self, rows: TrainingRows) -> None:
        """Fit the probe on labelled training nodes."""
        labelled = rows.labels >= 0
        train, labels = rows.train[labelled], rows.labels[labelled]
        points = _flat_directions(rows.latent.select(train)).cpu().numpy()
        weight, bias = fit_logistic(points, labels, probe_penalty(len(labels), rows.homophily))
        self.probe.weight.copy_(torch.from_numpy(weight))
        self.probe.bias.copy_(torch.from_numpy(bias))

    def forward(self, latent: Latent) -> Tensor:
        """The energy of each row."""
        return logit_energy(self.logits(latent))

    def weight(self, spread: float, homophily: float) -> float:
        """As far as neighbours share classes: elsewhere logits hardly tell classes, let alone what is in none."""
        return homophily

    def logits(self, batch: HopBatch) -> Tensor:
        """Class logits of shape (n, C)."""
        logits: Tensor = self.probe(_flat_directions(batch))
        return logits


def probe_penalty(num_labels: int, homophily: float) -> float:
    r"""The penalty of the probe, :math:`(1 - \eta)\,\lambda + \eta \min(\lambda, \lambda_0 / n)`.

    Where neighbours share classes more labels can tell more apart; elsewhere directions hold too little for that.

    Arguments:
        num_labels: The number of labels :math:`n`.
        homophily: The homophily :math:`\eta`.

    Example:
        >>> probe_penalty(100, 1.0), probe_penalty(1000, 1.0), probe_penalty(1000, 0.0)
        (0.0002, 2e-05, 0.0003)
    """
    return (1 - homophily) * PENALTY + homophily * min(PENALTY, PRIOR / num_labels)


def _flat_directions(batch: HopBatch) -> Tensor:
    return (batch.hops * batch.inverse_norm).transpose(0, 1).flatten(1)
