"""A score taken apart by hop and by feature: integrated gradients against the mean of a class."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from degem.explain.explanation import FeaturePart
from degem.graph import Graph

Array = NDArray[np.floating[Any]]

NUM_PATH_STEPS = 16
NUM_FEATURES = 8


@runtime_checkable
class HopScored(Protocol):
    """A detector whose score is a differentiable function of a node's own hop features.

    A method that implements these three has its scores explained by hop and by feature; one that does not gets the
    context only.
    """

    def hop_rows(self, graph: Graph, nodes: NDArray[np.int64]) -> list[torch.Tensor]:
        """Hop features 0 … L of ``nodes``, each of shape (k, d₀), as the network sees them."""

    def score_from_hops(self, hops: list[torch.Tensor]) -> torch.Tensor:
        """Scores of shape (k,), differentiable, each from its own row of ``hops`` only."""

    def hop_reference(self) -> list[torch.Tensor]:
        """The mean hop features of the training nodes of each class, (C, d₀) a hop; one row without labels."""


def integrated_gradients(
    detector: HopScored, hops: list[torch.Tensor], baseline: list[torch.Tensor], num_steps: int = NUM_PATH_STEPS
) -> Array:
    r"""What each entry of the hop features added to the score, from ``baseline`` to ``hops``.

    .. math:: (x - x') \odot \frac{1}{m} \sum_{k=1}^{m} \nabla E\left(x' + \tfrac{k - 1/2}{m}(x - x')\right)

    The parts of a node add up to the difference of the two scores, up to the step size
    (Sundararajan et al., *Axiomatic attribution for deep networks*, 2017).

    Arguments:
        detector: Gives the score :math:`E`.
        hops: The hop features :math:`x`, each of shape (k, d₀).
        baseline: What they are compared with, :math:`x'`, of the same shapes.
        num_steps: Steps :math:`m` on the straight line between the two.

    Returns:
        An array of shape (k, L + 1, d₀).
    """
    change = torch.stack(hops, dim=1) - torch.stack(baseline, dim=1)
    start = torch.stack(baseline, dim=1)
    gradient = torch.zeros_like(change)
    for step in range(num_steps):
        point = (start + (step + 0.5) / num_steps * change).detach().requires_grad_()
        with torch.enable_grad():
            energy = detector.score_from_hops(list(point.unbind(dim=1))).sum()
        gradient += torch.autograd.grad(energy, point)[0]
    parts: Array = (change * gradient / num_steps).detach().cpu().numpy()
    return parts


@dataclasses.dataclass(frozen=True)
class Parts:
    """Parts of the score, (k, L + 1, d₀), and the name of what each node was compared with."""

    values: Array
    compared_with: list[str]


def parts_of(detector: HopScored, graph: Graph, rows: NDArray[np.int64], names: list[str]) -> Parts:
    """The parts of each node's score against the mean of the class that its own features are closest to.

    The predicted class will not do: a node wired into another class is predicted to be of that class, and then its own
    features look like the fault.
    """
    hops, reference = detector.hop_rows(graph, rows), detector.hop_reference()
    home = torch.cdist(hops[0], reference[0]).argmin(dim=1)
    several = len(reference[0]) > 1
    compared = [f"the mean of class {name}" for name in names] if several else ["the mean training node"]
    parts = integrated_gradients(detector, hops, [means[home] for means in reference])
    return Parts(parts, [compared[index] for index in home.tolist()])


def strongest(parts: Array, names: tuple[str, ...] | None) -> tuple[FeaturePart, ...]:
    """The features that raised the score most; those that lowered it are left out."""
    if parts.size == 0:
        return ()
    totals = parts.sum(axis=0)
    best = np.argsort(-totals, kind="stable")[:NUM_FEATURES]
    return tuple(
        FeaturePart(
            names[column] if names else f"feature {column}", float(totals[column]), int(parts[:, column].argmax())
        )
        for column in best
        if totals[column] > 0
    )
