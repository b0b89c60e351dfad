"""How well scores tell out-of-distribution from in-distribution nodes; every name says which of the two is positive.

All functions take ``(id_scores, ood_scores)``, higher = more OOD, as detectors give them. Ties count half in the AUROC
and form one threshold elsewhere, so constant scores have an AUROC of 0.5 and an FPR95 of 1. An empty side, NaN and
infinities are errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from degem.errors import DegemError

RECALL = 0.95


@dataclass(frozen=True)
class Metrics:
    """The three figures of a table, in percent.

    Arguments:
        auroc: Area under the ROC curve; higher is better.
        aupr: Average precision; higher is better.
        fpr95: False-positive rate at 95 % recall; lower is better.
    """

    auroc: float
    aupr: float
    fpr95: float


def paper_metrics(id_scores: ArrayLike, ood_scores: ArrayLike) -> Metrics:
    """AUROC, AUPR and FPR95 as the DeGEM and GNNSafe papers print them: in percent, in-distribution positive.

    Example:
        >>> paper_metrics([0.1, 0.3], [0.2, 0.4])
        Metrics(auroc=75.0, aupr=83.33..., fpr95=50.0)
    """
    return Metrics(
        auroc=100 * auroc_id_positive(id_scores, ood_scores),
        aupr=100 * aupr_id_positive(id_scores, ood_scores),
        fpr95=100 * fpr95_id_positive(id_scores, ood_scores),
    )


def auroc_id_positive(id_scores: ArrayLike, ood_scores: ArrayLike) -> float:
    """The chance that a random ID node scores lower than a random OOD node, ties counting half.

    Turning both the classes and the sign round changes nothing: this equals :func:`auroc_ood_positive`.

    Example:
        >>> auroc_id_positive([0.1, 0.2], [0.2, 0.9])
        0.875
    """
    return float(roc_auc_score(*_id_positive(id_scores, ood_scores)))


def auroc_ood_positive(id_scores: ArrayLike, ood_scores: ArrayLike) -> float:
    """The chance that a random OOD node scores higher than a random ID node, ties counting half.

    Example:
        >>> auroc_ood_positive([0.1, 0.2], [0.2, 0.9])
        0.875
    """
    return float(roc_auc_score(*_ood_positive(id_scores, ood_scores)))


def aupr_id_positive(id_scores: ArrayLike, ood_scores: ArrayLike) -> float:
    """The average precision of finding ID nodes among the lowest scores.

    Example:
        >>> aupr_id_positive([0.1, 0.3], [0.2, 0.9])
        0.8333333333333333
    """
    return float(average_precision_score(*_id_positive(id_scores, ood_scores)))


def aupr_ood_positive(id_scores: ArrayLike, ood_scores: ArrayLike) -> float:
    """The average precision of finding OOD nodes among the highest scores.

    Example:
        >>> aupr_ood_positive([0.1, 0.3], [0.2, 0.9])
        0.8333333333333333
    """
    return float(average_precision_score(*_ood_positive(id_scores, ood_scores)))


def fpr95_id_positive(id_scores: ArrayLike, ood_scores: ArrayLike) -> float:
    """The share of OOD nodes accepted as ID where the share of ID nodes accepted is nearest to 95 %.

    Example:
        >>> fpr95_id_positive([0.1, 0.3], [0.2, 0.9])
        0.5
    """
    return _fpr_at_recall(*_id_positive(id_scores, ood_scores))


def fpr95_ood_positive(id_scores: ArrayLike, ood_scores: ArrayLike) -> float:
    """The share of ID nodes flagged as OOD where the share of OOD nodes flagged is nearest to 95 %.

    Example:
        >>> fpr95_ood_positive([0.1, 0.3], [0.2, 0.9])
        0.5
    """
    return _fpr_at_recall(*_ood_positive(id_scores, ood_scores))


def auroc_interval(id_scores: ArrayLike, ood_scores: ArrayLike, *, confidence: float = 0.95) -> tuple[float, float]:
    r"""A confidence interval of the AUROC over the draw of the test nodes, for one fitted detector.

    Its ends solve :math:`|\hat\theta - \theta| = z \sqrt{V(\theta)}` with Hanley and McNeil's variance at
    :math:`\theta` (Newcombe, *Confidence intervals for an effect size measure based on the Mann–Whitney statistic,
    part 2*, 2006, method 5), so they stay within [0, 1] and keep a width where the AUROC is 1. It takes nodes as
    independent draws; on a graph neighbours are not, and the truth is wider.

    Arguments:
        id_scores: Scores of ID nodes.
        ood_scores: Scores of OOD nodes.
        confidence: The share of such intervals that hold the true AUROC.

    Example:
        >>> low, high = auroc_interval(range(50), range(100, 150))
        >>> round(low, 3), high
        (0.96, 1.0)
    """
    if not 0 < confidence < 1:
        raise DegemError(f"a confidence must lie strictly between 0 and 1, got {confidence}")
    estimate = auroc_ood_positive(id_scores, ood_scores)
    m, n = np.size(id_scores), np.size(ood_scores)
    z = NormalDist().inv_cdf((1 + confidence) / 2)

    def spread(theta: float) -> float:
        bracket = 1 + ((m + n) / 2 - 1) * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return z * math.sqrt(theta * (1 - theta) * bracket / (m * n))

    inner = min(max(estimate, 1e-12), 1 - 1e-12)  # at 0 and 1 themselves the spread is 0: a root, but not the one
    low = 0.0 if estimate == 0 else brentq(lambda theta: estimate - theta - spread(theta), 0.0, inner)
    high = 1.0 if estimate == 1 else brentq(lambda theta: theta - estimate - spread(theta), inner, 1.0)
    return float(low), float(high)


def risk_coverage(wrong: ArrayLike, doubt: ArrayLike) -> NDArray[np.float64]:
    """The share of wrong predictions among the k least doubted ones, for k = 1 … n; ties share their errors.

    Arguments:
        wrong: Which predictions are wrong; or how likely each is, for the curve that this makes one expect.
        doubt: How little each is trusted, such as the chance that it is wrong.

    Example:
        >>> risk_coverage([True, False, False, False], [0.9, 0.1, 0.4, 0.4]).tolist()
        [0.0, 0.0, 0.0, 0.25]
    """
    errors, order = np.asarray(wrong, dtype=np.float64), _checked("given", doubt)
    _, group, sizes = np.unique(order, return_inverse=True, return_counts=True)
    rates = np.bincount(group, weights=errors) / sizes
    return np.cumsum(np.repeat(rates, sizes)) / np.arange(1, len(errors) + 1)


def aurc(wrong: ArrayLike, doubt: ArrayLike) -> float:
    """The area under the risk–coverage curve (Geifman & El-Yaniv 2017); lower is better.

    Example:
        >>> aurc([True, False, False, False], [0.9, 0.1, 0.4, 0.4])
        0.0625
    """
    return float(risk_coverage(wrong, doubt).mean())


def accuracy(labels: ArrayLike, predicted: ArrayLike) -> float:
    """The share of labelled nodes (label ≥ 0) whose class was predicted.

    Example:
        >>> accuracy([0, 1, -1], [0, 0, 0])
        0.5
    """
    truth, guess = np.asarray(labels), np.asarray(predicted)
    if truth.shape != guess.shape or truth.ndim != 1:
        raise DegemError(f"labels have shape {truth.shape}, predictions {guess.shape}: give one of each a node")
    known = truth >= 0
    if not known.any():
        raise DegemError("none of the nodes is labelled: there is no accuracy to give")
    return float(np.mean(truth[known] == guess[known]))


def _ood_positive(id_scores: ArrayLike, ood_scores: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """For each node whether it is positive, and a score that is higher the more positive it looks."""
    known, strange = _checked("ID", id_scores), _checked("OOD", ood_scores)
    return np.arange(len(known) + len(strange)) >= len(known), np.concatenate([known, strange])


def _id_positive(id_scores: ArrayLike, ood_scores: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    is_ood, scores = _ood_positive(id_scores, ood_scores)
    return ~is_ood, -scores


def _checked(side: str, scores: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise DegemError(f"there are no {side} scores to compare (shape {array.shape}): give one a node, at least one")
    if not np.isfinite(array).all():
        raise DegemError(f"the {side} scores hold NaN or infinities (at {int(np.argmin(np.isfinite(array)))})")
    return array


def _fpr_at_recall(positive: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """The false-positive rate at the threshold whose recall is nearest to 95 %.

    Of several thresholds with that recall the loosest counts, except at a recall of 1, where it is the first that
    reaches it: so the papers' program does.
    """
    fpr, recall, _ = roc_curve(positive, scores, drop_intermediate=False)
    end = int(np.searchsorted(recall, recall[-1])) + 1
    fpr, recall = fpr[:end][::-1], recall[:end][::-1]
    return float(fpr[np.argmin(np.abs(recall - RECALL))])
