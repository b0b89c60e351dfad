"""What the neighbourhood says of classes: how far it points away from every class."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from degem.detectors.degem.energies.base import EnergyTerm, TrainingRows
from degem.detectors.degem.hop_batch import HopBatch, Latent

CONCENTRATION = 10.0


class PrototypeEnergy(EnergyTerm):
    r"""The energy :math:`-\log \sum_c \exp(\kappa \cos(g - \mu, m_c))` of the mean direction :math:`g` of all hops.

    It is that of a mixture of von Mises–Fisher distributions of one concentration :math:`\kappa` (Banerjee et al.,
    *Clustering on the Unit Hypersphere*, JMLR 2005), seen from the mean :math:`\mu` of every node of the training
    graph, as the paper's summary is. A prototype :math:`m_c` is the mean direction of its class: it needs few labels.

    Arguments:
        width: The number of projected feature columns.
        num_classes: The number of classes C, at least 2.
    """

    name = "prototypes"
    mean: Tensor
    prototypes: Tensor

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("prototypes", torch.zeros(num_classes, width))

    @torch.no_grad()
    def fit(self, rows: TrainingRows) -> None:
        """Take the prototypes from labelled training nodes."""
        self.mean.copy_(_mean_direction(rows.latent).mean(dim=0))
        labelled = rows.labels >= 0
        seen = self._seen(rows.latent.select(rows.train[labelled]))
        labels = torch.from_numpy(rows.labels[labelled]).to(seen.device)
        self.prototypes.copy_(F.normalize(torch.zeros_like(self.prototypes).index_add_(0, labels, seen), dim=1))

    def forward(self, latent: Latent) -> Tensor:
        """The energy of each row."""
        return -torch.logsumexp(CONCENTRATION * self._seen(latent) @ self.prototypes.T, dim=1)

    def weight(self, spread: float, homophily: float) -> float:
        """From half a vote to a whole one, as far as neighbours share classes."""
        return (1 + homophily) / 2

    def _seen(self, batch: HopBatch) -> Tensor:
        """Where the mean direction lies as seen from the mean."""
        return F.normalize(_mean_direction(batch) - self.mean, dim=1, eps=1e-8)


def _mean_direction(batch: HopBatch) -> Tensor:
    return (batch.hops * batch.inverse_norm).mean(dim=0)
