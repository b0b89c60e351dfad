"""What ground truth adds to the page: curves, metrics with intervals, and the confusion at every threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from degem.errors import GraphError
from degem.metrics import RECALL, aupr_ood_positive, auroc_interval, auroc_ood_positive, fpr95_ood_positive

NUM_RESAMPLES = 200
MAX_CURVE_POINTS = 300


@dataclass(frozen=True)
class Metric:
    """A number and how far it can be trusted."""

    name: str  # what it is; OOD is the class to find
    value: float
    low: float  # the lower end of its 95 % interval
    high: float  # the upper end


@dataclass(frozen=True)
class Curves:
    """Points on the ROC and precision–recall curves, at common thresholds from strict to lax."""

    false_alarms: NDArray[np.float64]  # the share of ID nodes flagged
    recall: NDArray[np.float64]  # the share of OOD nodes flagged
    precision: NDArray[np.float64]  # the share of flagged nodes that are OOD

    def thinned(self) -> Curves:
        """At most ``MAX_CURVE_POINTS`` points, spread evenly over recall and false alarms."""
        travelled = self.recall + self.false_alarms
        wanted = np.linspace(0, 2, MAX_CURVE_POINTS)
        kept = np.unique(np.searchsorted(travelled, wanted).clip(0, len(travelled) - 1))
        return Curves(self.false_alarms[kept], self.recall[kept], self.precision[kept])


def check_truth(is_ood: NDArray[Any], num_nodes: int) -> NDArray[np.bool_]:
    """The ground truth as booleans, if it is one of this graph and has both kinds."""
    truth = np.asarray(is_ood).astype(np.bool_)
    if truth.shape != (num_nodes,):
        raise GraphError(f"the ground truth has shape {truth.shape}, but the graph has {num_nodes} nodes")
    if truth.all() or not truth.any():
        raise GraphError("the ground truth names only one kind of node: it needs both ID (0) and OOD (1) nodes")
    return truth


def curves(scores: NDArray[np.float64], is_ood: NDArray[np.bool_]) -> Curves:
    """The exact curves, one point a distinct score."""
    order = np.argsort(-scores, kind="stable")
    return _weighted(is_ood[order], _last_of_ties(scores[order]), np.ones(len(scores)))


def metrics(scores: NDArray[np.float64], is_ood: NDArray[np.bool_], seed: int) -> list[Metric]:
    """AUROC, AUPR and FPR95 with 95 % intervals: Newcombe's for the AUROC, else a bootstrap of ID and OOD nodes apart.

    Arguments:
        scores: Higher = more OOD.
        is_ood: The ground truth; OOD is the positive class.
        seed: Seed of the resamples.
    """
    known, strange = scores[~is_ood], scores[is_ood]
    order = np.argsort(-scores, kind="stable")
    truth, ends = is_ood[order], _last_of_ties(scores[order])
    rng = np.random.default_rng(seed)
    draws = [_summarised(_weighted(truth, ends, _resample(truth, rng))) for _ in range(NUM_RESAMPLES)]
    (low_aupr, low_fpr), (high_aupr, high_fpr) = np.quantile(draws, [0.025, 0.975], axis=0).tolist()
    return [
        Metric("AUROC", auroc_ood_positive(known, strange), *auroc_interval(known, strange)),
        Metric("AUPR, OOD positive", aupr_ood_positive(known, strange), low_aupr, high_aupr),
        Metric("FPR at 95 % OOD recall", fpr95_ood_positive(known, strange), low_fpr, high_fpr),
    ]


def _weighted(truth: NDArray[np.bool_], ends: NDArray[np.int64], weights: NDArray[np.float64]) -> Curves:
    """The curves of nodes sorted by falling score, where each node counts ``weights`` times."""
    true = np.cumsum(np.where(truth, weights, 0))[ends]
    false = np.cumsum(np.where(truth, 0, weights))[ends]
    precision = true / np.maximum(true + false, 1e-12)
    return Curves(
        np.concatenate([[0.0], false / false[-1]]),
        np.concatenate([[0.0], true / true[-1]]),
        np.concatenate([[1.0], precision]),
    )


def _summarised(found: Curves) -> tuple[float, float]:
    """Average precision, and the false alarms where recall is nearest to 95 %."""
    precision = np.sum(np.diff(found.recall) * found.precision[1:])
    return float(precision), float(found.false_alarms[np.argmin(np.abs(found.recall - RECALL))])


def _resample(truth: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.float64]:
    weights = np.empty(len(truth))
    for kind in (truth, ~truth):
        count = int(kind.sum())
        weights[kind] = np.bincount(rng.integers(count, size=count), minlength=count)
    return weights


def _last_of_ties(ordered: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
