"""DeGEM's score of single nodes, from rows that someone else propagates: no graph is needed here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from degem.calibration.judged import ScoreResult
from degem.calibration.known import KnownNodes
from degem.detectors.degem.combine import Combination, combine
from degem.detectors.degem.hop_batch import HopBatch
from degem.detectors.degem.model import DeGEMModel
from degem.ops.features import Features

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Smoothing:
    r"""Averaging over neighbours, :math:`v \leftarrow (1 - w)\,v + w\,D^{-1}Av`; isolated nodes keep theirs.

    Arguments:
        weight: The weight :math:`w` of the neighbours.
        num_steps: How often.
    """

    weight: float
    num_steps: int


@dataclass(frozen=True)
class ScoredRows:
    """Nodes of a graph as they are scored there.

    Arguments:
        hops: Their rows of the hops that energies look at, of shape (hops, n, r).
        degrees: The numbers of their neighbours.
        returning: The means over neighbours of 1 / degree.
        smoothing: What smoothing adds to the energy of each term, of shape (n, terms).
        combination: The scale in this graph.
    """

    hops: Array
    degrees: Array
    returning: Array
    smoothing: Array
    combination: Combination


@dataclass(frozen=True)
class RowScorer:
    """The steps of DeGEM's score between which rows travel over the graph.

    The caller propagates what :meth:`project` gives, each row over the root of its degree, :attr:`num_hops` times;
    :meth:`energies` makes energies and class probabilities of the rows, which the caller smooths; of in-distribution
    nodes that were held out :meth:`combination` makes the scale, and :meth:`result` the scores.

    Arguments:
        model: The fitted model.
        energy_smoothing: How energies of the terms in ``smoothed`` are smoothed.
        class_smoothing: How class probabilities are smoothed.
        held_out: The nodes that the scale is taken from, where the graph holds them.
    """

    model: DeGEMModel
    energy_smoothing: Smoothing
    class_smoothing: Smoothing
    held_out: KnownNodes

    @property
    def num_hops(self) -> int:
        """The number of hops L."""
        return self.model.hops[-1]

    @property
    def hops(self) -> tuple[int, ...]:
        """The hops that energies look at."""
        return self.model.hops

    @property
    def width(self) -> int:
        """The number of projected columns r."""
        return int(self.model.projection.shape[1])

    @property
    def num_classes(self) -> int:
        """The number of classes C; 0 without labels."""
        return 0 if self.model.classifier is None else self.model.classifier.out_features

    @property
    def smoothed(self) -> NDArray[np.bool_]:
        """Which terms are smoothed, of shape (terms,)."""
        return np.array(self.model.smoothed)

    def project(self, features: Features) -> tuple[Array, Array]:
        """Projected rows of shape (n, r), and statistics of the rows, of shape (n, 3)."""
        encoded = self.model.rows.encode(features)
        projected = np.asarray(encoded @ self.model.projection.cpu().numpy(), dtype=np.float32)
        return projected, self.model.rows.statistics(encoded)

    @torch.no_grad()
    def energies(self, hops: Array, statistics: Array, degrees: Array, returning: Array) -> tuple[Array, Array | None]:
        """Energies of shape (n, terms) and class probabilities of shape (n, C), before smoothing.

        Arguments:
            hops: Rows of the hops in :attr:`hops`, of shape (hops, n, r).
            statistics: As :meth:`project` gives them.
            degrees: The numbers of neighbours.
            returning: The means over neighbours of 1 / degree.
        """
        parts = (self._tensor(part) for part in (hops, statistics, degrees, returning))
        latent = self.model.encode(HopBatch.of(*parts))
        chances = self.model.probabilities(latent).cpu().numpy() if self.num_classes else None
        return self.model.energies(latent).cpu().numpy(), chances

    @torch.no_grad()
    def combination(self, energies: Array, isolated: NDArray[np.bool_]) -> Combination:
        """The scale, from smoothed energies of held-out nodes; that of the fit where there are none."""
        if len(energies) == 0:
            return self.model.combination
        return self.model.combination_of(self._tensor(energies), self._tensor(isolated))

    @torch.no_grad()
    def result(
        self, energies: Array, isolated: NDArray[np.bool_], chances: Array | None, combination: Combination
    ) -> ScoreResult:
        """The result of some rows, from smoothed energies and class probabilities."""
        return result_of(self.model, self._tensor(energies), isolated, chances, combination)

    def _tensor(self, array: NDArray[np.float32] | NDArray[np.bool_]) -> Tensor:
        return torch.from_numpy(array).to(self.model.weights.device)


def result_of(
    model: DeGEMModel,
    energies: Tensor,
    isolated: NDArray[np.bool_],
    chances: Array | None,
    combination: Combination,
) -> ScoreResult:
    """Scores and what each term adds to them, from energies of shape (n, terms)."""
    isolated_rows = torch.from_numpy(isolated).to(energies.device)
    scores = combine(energies, isolated_rows, model.needs_neighbours, combination).cpu().numpy()
    columns = combination.parts(energies).T.cpu().numpy()
    terms = {term.name: column for term, column in zip(model.energy_terms, columns, strict=True)}
    return ScoreResult(scores, chances, terms)
