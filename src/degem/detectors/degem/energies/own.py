"""How usual a node's own features are: how many there are, how large, and how rare."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from degem.detectors.degem.energies.base import EnergyTerm, TrainingRows
from degem.detectors.degem.hop_batch import Latent

NUM_KERNELS, MIN_BANDWIDTH = 512, (0.05, 0.02, 0.05)
FEW_DIMENSIONS, MOST = 10.0, 3.0


class OwnEnergy(EnergyTerm):
    r"""Minus the log-density of what is said of a row of features: how many are not zero, how large, how rare it is.

    The density is a kernel estimate over nodes of the training graph with Scott's bandwidth (1992),
    :math:`h = \sigma\,n^{-1/7}`: too little that is rare is strange as well as too much. Of a table, whose rows have
    few intrinsic dimensions :math:`d`, it is the nearest-neighbour estimate of the rows themselves, :math:`d \log r_k`:
    there, a row that lies among others is never strange.
    """

    name = "own"
    needs_neighbours = False
    kernels: Tensor
    bandwidth: Tensor
    dimension: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kernels", torch.zeros(NUM_KERNELS, len(MIN_BANDWIDTH)))
        self.register_buffer("bandwidth", torch.ones(len(MIN_BANDWIDTH)))
        self.register_buffer("dimension", torch.tensor(torch.inf))

    @torch.no_grad()
    def fit(self, rows: TrainingRows) -> None:
        """Put a kernel on each node of the training graph, or on 512 of them."""
        points = rows.latent.row
        self.dimension.fill_(rows.dimension)
        spread = points.std(dim=0, correction=0) * len(points) ** (-1 / (4 + len(MIN_BANDWIDTH)))
        self.bandwidth.copy_(torch.maximum(spread, torch.tensor(MIN_BANDWIDTH).to(spread)))
        chosen = np.resize(rows.rng.permutation(len(points)), NUM_KERNELS)
        self.kernels.copy_(points[torch.from_numpy(chosen)])

    def forward(self, latent: Latent) -> Tensor:
        """The energy of each row."""
        if self._is_distance:
            return self.dimension * latent.row[:, 2]
        exponents = ((latent.row[:, None] - self.kernels) / self.bandwidth).square().sum(dim=2) / -2
        return math.log(NUM_KERNELS) - torch.logsumexp(exponents, dim=1)

    def weight(self, spread: float, homophily: float) -> float:
        """A whole vote, as nothing else looks at the node itself; that of a table as far as it spreads, up to 3."""
        return min(max(spread, 1.0), MOST) if self._is_distance else 1.0

    @property
    def _is_distance(self) -> bool:
        return bool(self.dimension < FEW_DIMENSIONS)
