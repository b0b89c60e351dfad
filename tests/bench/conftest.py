"""A scenario on a made graph, and a detector that can be told what to do."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from degem import Detector, Graph
from degem.calibration import ScoreResult
from degem.data.splits import random_split
from degem.detectors.split import TrainingSet
from degem.shifts import Scenario, Settings
from degem.shifts.scenarios import manipulation
from degem.training import History, OnProgress, train


@dataclasses.dataclass(kw_only=True, eq=False)
class Learner(Detector):
    """Its score is the distance from the mean of the training features, which it approaches and then leaves again."""

    paper: ClassVar[str] = "a test"
    needs_labels: ClassVar[bool] = False
    overshoot: float = 0.0
    num_steps: int = 4
    fails: bool = False
    fits: ClassVar[list[Any]] = []

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        if self.fails:
            raise RuntimeError("told to\nfail")
        type(self).fits.append(training)
        goal = np.asarray(training.graph.features)[training.nodes].mean(axis=0)

        def step(index: int) -> dict[str, float]:
            self.mean_ = goal + self.overshoot * abs(index - 2)
            return {"loss": 0.0}

        return train(step, self.num_steps, on_progress=on_progress)

    def _score(self, graph: Graph) -> ScoreResult:
        return ScoreResult(np.linalg.norm(np.asarray(graph.features) - self.mean_, axis=1))

    def _score_in_training(self, training: TrainingSet, graph: Graph) -> ScoreResult:
        return self._score(graph)

    def _state(self) -> dict[str, torch.Tensor]:
        return {"mean": torch.from_numpy(self.mean_)}

    def _restore(self, state: dict[str, torch.Tensor]) -> None:
        self.mean_ = state["mean"].numpy()


@dataclasses.dataclass(kw_only=True, eq=False)
class Exposed(Learner):
    """The same, and it asks for exposure nodes."""

    needs_exposure: ClassVar[bool] = True


@pytest.fixture(autouse=True)
def learners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered for one test only: other tests go through the whole registry."""
    for name, kind in (("learner", Learner), ("exposed", Exposed)):
        monkeypatch.setattr(kind, "name", name, raising=False)
        monkeypatch.setitem(Detector.registry, name, kind)
    monkeypatch.setattr(Learner, "fits", [])


@pytest.fixture
def scenario(small_graph: Graph) -> Scenario:
    return manipulation(small_graph, random_split(small_graph.labelled, 0, train=0.4), Settings(), "made")
