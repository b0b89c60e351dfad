"""A Gaussian with a flow on top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from degem.detectors.backbone import BackboneDetector, Layers
from degem.detectors.base import Detector, ScoreResult
from degem.detectors.restoring import matching
from degem.detectors.split import TrainingSet
from degem.errors import ModelFileError
from degem.extras import needs_extra
from degem.graph import Graph
from degem.model_file import tensor_of
from degem.parameters import Count, Depth, Positive
from degem.training import History, OnProgress, descend, seeded, train

RIDGE = 1e-6


@dataclass(kw_only=True, eq=False)
class ResidualFlow(BackboneDetector):
    r"""The density of a Gaussian corrected by a flow, in the penultimate layer (Zisselman & Tamar 2020).

    .. math:: s = -\max_c \log p_\theta(\Sigma^{-1/2} (h - \mu_c) \mid c)

    :math:`\mu_c` and the common :math:`\Sigma` are those of the training nodes, so the linear part is the Gaussian of
    :class:`~degem.detectors.latents.Mahalanobis`; the residual part is a RealNVP whose last layers start at zero,
    that is, at this Gaussian. Differences from the authors' program: one flow conditioned on the class in place of one
    flow a class, which few training nodes a class could not fit; Ledoit–Wolf covariance, as the plain one is singular
    there; full-batch steps of 1e-4 where theirs are 1e-5 on batches of 256.

    Arguments:
        num_couplings: Coupling layers of the flow.
        num_flow_steps: Full-batch steps of the flow.
        flow_learning_rate: Their Adam's step size.

    The others are those of :class:`~degem.detectors.backbone.GCNDetector`.
    """

    num_couplings: Depth = 10
    num_flow_steps: Count = 200
    flow_learning_rate: Positive = 1e-4

    reads_logits = False
    name = "residualflow"

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        from sklearn.covariance import LedoitWolf  # slow to load, and a detector that is only described does without

        history = super()._fit(training, on_progress)
        latents, labels, means = self._latents_by_class(training)
        estimate = LedoitWolf().fit(latents - means[labels])
        self.means_ = torch.from_numpy(means).float().to(self.device)
        self.whitening_ = torch.from_numpy(_whitening(estimate)).float().to(self.device)
        whitened = (torch.from_numpy(latents).float().to(self.device) - self.means_[labels]) @ self.whitening_
        with seeded(training.seed):
            self.flow_ = self._new_flow(training.num_classes)
            learnt = self._fit_flow(whitened, torch.from_numpy(labels).to(self.device), on_progress)
        return {**history, **{f"flow_{name}": values for name, values in learnt.items()}}

    def _fit_flow(self, whitened: Tensor, labels: Tensor, on_progress: OnProgress) -> History:
        optimiser = torch.optim.Adam(self.flow_.parameters(), lr=self.flow_learning_rate)
        context = torch.eye(len(self.means_), device=whitened.device)[labels]

        def step(_: int) -> dict[str, float]:
            return descend(optimiser, {"likelihood": -self.flow_(context).log_prob(whitened).mean()})

        return train(step, self.num_flow_steps, on_progress=on_progress, rows_per_step=len(whitened))

    def _score_in_training(self, training: TrainingSet, graph: Graph) -> ScoreResult:
        if not hasattr(self, "flow_"):
            return Detector._score_in_training(self, training, graph)
        return super()._score_in_training(training, graph)

    def _score_layers(self, layers: Layers, graph: Graph) -> Tensor:
        densities = []
        with torch.no_grad():
            for context, mean in zip(torch.eye(len(self.means_), device=self.device), self.means_, strict=True):
                whitened = (layers.hidden[-1] - mean) @ self.whitening_
                densities.append(self.flow_(context).log_prob(whitened))
        return -torch.stack(densities).amax(dim=0)

    def _state(self) -> dict[str, Tensor]:
        flow = {f"flow.{name}": value for name, value in self.flow_.state_dict().items()}
        return {**super()._state(), **flow, "means": self.means_, "whitening": self.whitening_}

    def _restore(self, state: dict[str, Tensor]) -> None:
        super()._restore(state)
        classes, width = len(state.get("means", ())), self.latent_dim_
        self.means_ = tensor_of(state, "means", torch.float32, classes, width).to(self.device)
        self.whitening_ = tensor_of(state, "whitening", torch.float32, width, width).to(self.device)
        # Zuko's flow cannot be made without memory: each coupling holds a square matrix, the file must hold as much.
        if (
            sum(value.numel() for name, value in state.items() if name.startswith("flow."))
            < self.num_couplings * width**2
        ):
            raise ModelFileError("the model file holds less than its flow: fit and save the model again")
        self.flow_ = self._new_flow(classes)
        declared = self.flow_.state_dict()
        found = matching(declared, state, "flow.")
        if any(
            like.dtype == torch.bool and not like.equal(found[name].to(like.device)) for name, like in declared.items()
        ):
            raise ModelFileError("the model file's flow splits its inputs in another way: fit and save the model again")
        self.flow_.load_state_dict(found)

    def _new_flow(self, num_classes: int) -> nn.Module:
        with needs_extra("bench", "ResidualFlow"):
            from zuko.flows import RealNVP

        flow = RealNVP(
            self.latent_dim_,
            context=num_classes,
            transforms=self.num_couplings,
            hidden_features=(self.hidden_dim, self.hidden_dim),
        )
        for coupling in flow.transform.transforms:
            nn.init.zeros_(coupling.hyper[-1].weight)
            nn.init.zeros_(coupling.hyper[-1].bias)
        moved: nn.Module = flow.to(self.device)
        return moved


def _whitening(estimate: Any) -> NDArray[np.float64]:
    """The Cholesky factor of the precision; of latents that do not vary in some direction, with a ridge."""
    try:
        return np.linalg.cholesky(estimate.get_precision())
    except np.linalg.LinAlgError:
        covariance = estimate.covariance_
        ridge = max(RIDGE * np.trace(covariance) / len(covariance), RIDGE)
        return np.linalg.cholesky(np.linalg.inv(covariance + ridge * np.eye(len(covariance))))
