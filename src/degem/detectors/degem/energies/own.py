"""How usual a node's own features are: a density of a table's columns, or of how much there is of a bag of words."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from degem.detectors.degem.energies.base import EnergyTerm, TrainingRows
from degem.detectors.degem.hop_batch import HopBatch, Latent
from degem.nn.mixture_energy import MixtureEnergy
from degem.ops.density import fit_mixture

MAX_COLUMNS, MOST = 64, 3.0
NUM_KERNELS, MIN_BANDWIDTH = 512, 0.05


class TableEnergy(EnergyTerm):
    """A Gaussian of the encoded columns, its covariance shrunk (Ledoit & Wolf 2004).

    Arguments:
        width: The number of projected feature columns; the first 64 are looked at.
    """

    name = "own"
    needs_neighbours = False

    def __init__(self, width: int) -> None:
        super().__init__()
        self.columns = min(width, MAX_COLUMNS)
        self.density = MixtureEnergy(self.columns, 1)

    @torch.no_grad()
    def fit(self, rows: TrainingRows) -> None:
        """Fit the Gaussian on training nodes."""
        points = rows.train_latent.own_features[:, : self.columns]
        self.density.set_base(fit_mixture(points.double().cpu().numpy()))

    def forward(self, latent: Latent) -> Tensor:
        """The energy of each row."""
        energy: Tensor = self.density(latent.own_features[:, : self.columns])
        return energy

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
