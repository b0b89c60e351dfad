"""What an energy term is: it fits on training rows, and gives rows an energy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from degem.detectors.degem.hop_batch import Latent


@dataclass(frozen=True)
class TrainingRows:
    """What a term may learn from.

    Arguments:
        latent: Nodes of the training graph on their way through the encoder.
        train: Which of them are in-distribution training nodes, as sorted indices.
        labels: The class of each training node, −1 where unknown.
        homophily: The homophily η of the training labels beyond chance.
        dimension: The intrinsic dimension of the rows of a table; of bags of words it is beyond counting.
        generator: Source of randomness.
    """

    latent: Latent
    train: NDArray[np.int64]
    labels: NDArray[np.int64]
    homophily: float
    dimension: float
    generator: torch.Generator

    @property
    def train_latent(self) -> Latent:
        """The training nodes alone."""
        return self.latent.select(self.train)

    @property
    def rng(self) -> np.random.Generator:
        """A NumPy generator that follows the rows' own."""
        return np.random.default_rng(int(torch.randint(1 << 62, (1,), generator=self.generator).item()))


class EnergyTerm(nn.Module, ABC):
    """One factor of the energy. To add one, write a file with a subclass and name it in ``energies/__init__.py``.

    Its name is where it stands in ``ScoreResult.terms``. A term that ``needs_neighbours`` says nothing about isolated
    nodes; one that is ``smoothed`` is averaged over neighbours as far as the training labels are homophilic. Where an
    energy can be too low as well, ``low_odds`` says how likely that is beside one that is too high.
    """

    name: ClassVar[str]
    smoothed: ClassVar[bool] = False
    needs_neighbours: ClassVar[bool] = True
    low_odds: ClassVar[float] = 0.0

    @abstractmethod
    def fit(self, rows: TrainingRows) -> None:
        """Learn from training rows."""

    @abstractmethod
    def forward(self, latent: Latent) -> Tensor:
        """The energy of each row, of shape (n,); higher = more OOD."""

    def weight(self, spread: float, homophily: float) -> float:
        """What the term counts: half a vote, as it is one of several looks at the neighbourhood.

        Arguments:
            spread: How far its energies spread over held-out in-distribution nodes: half their central 68 %, in nats.
            homophily: The homophily η of the training labels beyond chance.
        """
        return 0.5
