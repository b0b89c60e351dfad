"""How usual a node's own features are: a density of a table's columns, or of how much there is of a bag of words."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from degem.detectors.degem.energies.base import EnergyTerm, TrainingRows
from degem.detectors.degem.hop_batch import HopBatch, Latent

MAX_COLUMNS, MOST = 64, 3.0
BANK, NEIGHBOURS, FLOOR = 2048, 10, 1e-3
NUM_KERNELS, MIN_BANDWIDTH = 512, 0.05


class TableEnergy(EnergyTerm):
    r"""The nearest-neighbour estimate of minus the log-density of the encoded columns, :math:`d \log r_k`.

    :math:`r_k` is the distance to the k-th nearest of some training nodes (Loftsgaarden & Quesenberry 1965): groups of
    nodes may have any shape.

    Arguments:
        width: The number of projected feature columns; the first 64 are looked at.
    """

    name = "own"
    needs_neighbours = False
    bank: Tensor
    rank: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.columns = min(width, MAX_COLUMNS)
        self.register_buffer("bank", torch.zeros(BANK, self.columns))
        self.register_buffer("rank", torch.tensor(NEIGHBOURS))

    @torch.no_grad()
    def fit(self, rows: TrainingRows) -> None:
        """Keep some training nodes, each as often as another where there are few."""
        points = rows.train_latent.own_features[:, : self.columns]
        chosen = np.resize(rows.rng.permutation(len(points))[:BANK], BANK)
        self.bank.copy_(points[torch.from_numpy(np.sort(chosen))])
        self.rank.fill_(min(NEIGHBOURS, len(points)) * max(BANK // len(points), 1))  # each stands there so many times

    def forward(self, latent: Latent) -> Tensor:
        """The energy of each row."""
        distances = torch.cdist(latent.own_features[:, : self.columns], self.bank)
        nearest = distances.kthvalue(min(max(int(self.rank), 1), BANK), dim=1).values
        return self.columns * torch.log(nearest + FLOOR)

    def weight(self, spread: float, homophily: float) -> float:
        """As much as it spreads, within bounds: it is a density of all that a node has, not of one trait."""
        return min(max(spread, 1.0), MOST)


class CountsEnergy(EnergyTerm):
    r"""A kernel density of how many features are not zero and how long the row is, both as logarithms.

    The bandwidth is Scott's (1992), :math:`h = \sigma\,n^{-1/6}`, at least 0.05.
    """

    name = "own"
    needs_neighbours = False
    kernels: Tensor
    bandwidth: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kernels", torch.zeros(NUM_KERNELS, 2))
        self.register_buffer("bandwidth", torch.ones(2))

    @torch.no_grad()
    def fit(self, rows: TrainingRows) -> None:
        """Put a kernel on each training node, or on 512 of them."""
        points = _amounts(rows.train_latent)
        spread = points.std(dim=0, correction=0) * len(points) ** (-1 / 6)
        self.bandwidth.copy_(spread.clamp_min(MIN_BANDWIDTH))
        chosen = np.resize(rows.rng.permutation(len(points)), NUM_KERNELS)
        self.kernels.copy_(points[torch.from_numpy(chosen)])

    def forward(self, latent: Latent) -> Tensor:
        """The energy of each row."""
        return math.log(NUM_KERNELS) - torch.logsumexp(self._exponents(_amounts(latent)), dim=1)

    def weight(self, spread: float, homophily: float) -> float:
        """A whole vote: nothing else looks at the node itself."""
        return 1.0

    def _exponents(self, points: Tensor) -> Tensor:
        return -((points[:, None] - self.kernels) / self.bandwidth).square().sum(dim=2) / 2


def _amounts(batch: HopBatch) -> Tensor:
    """Log-number of non-zero features and log-length of the row, of shape (n, 2)."""
    return torch.stack([batch.log_count, batch.log_lengths[:, 1]], dim=1)
