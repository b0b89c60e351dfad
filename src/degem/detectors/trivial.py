"""Detectors that learn nothing: what a benchmark's shifts give away for free.

Their signs follow one rule, not the results of a run: less evidence is more OOD. A node with fewer neighbours, fewer
features or a smaller feature vector is one that a model knows less about. The rule was not chosen blind: that fewer
non-zero features go with the OOD classes of Chameleon and Actor was known from an earlier measurement on test nodes, so
read ``nonzeros`` on those two label shifts as an illustration. Where a shift makes OOD nodes *richer*, these detectors
score below chance, which is as telling: turned over, they would win.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from degem.detectors.base import Detector, ScoreResult
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.ops.features import row_counts
from degem.training import History, OnProgress


@dataclasses.dataclass(kw_only=True, eq=False)
class _Trivial(Detector):
    """The base of detectors whose score is minus one number read off each node."""

    needs_labels = False

    @abstractmethod
    def _amount(self, graph: Graph) -> NDArray[Any]:
        """How much there is of a node."""

    @property
    def one_machine(self) -> None:
        """Nothing keeps it on one machine."""
        return None

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        return {}

    def _score(self, graph: Graph) -> ScoreResult:
        return ScoreResult(-np.asarray(self._amount(graph), dtype=np.float64))

    def _state(self) -> dict[str, torch.Tensor]:
        return {}

    def _restore(self, state: dict[str, torch.Tensor]) -> None:
        pass


@dataclasses.dataclass(kw_only=True, eq=False)
class Degree(_Trivial):
    """Minus the number of neighbours.

    Example:
        >>> graph = Graph.from_arrays(features=np.eye(3), edges=[(0, 1), (1, 2)])
        >>> Degree().fit(graph).decision_function(graph)
        array([-1., -2., -1.])
    """

    name = "degree"

    def _amount(self, graph: Graph) -> NDArray[Any]:
        return graph.degrees


@dataclasses.dataclass(kw_only=True, eq=False)
class NonZeros(_Trivial):
    """Minus the number of non-zero features."""

    name = "nonzeros"

    def _amount(self, graph: Graph) -> NDArray[Any]:
        return row_counts(graph.features)


@dataclasses.dataclass(kw_only=True, eq=False)
class Norm(_Trivial):
    """Minus the Euclidean norm of the features."""

    name = "norm"

    def _amount(self, graph: Graph) -> NDArray[Any]:
        if isinstance(graph.features, sp.csr_array):
            return np.asarray(np.sqrt(graph.features.multiply(graph.features).sum(axis=1)))
        return np.asarray(np.linalg.norm(graph.features, axis=1))
