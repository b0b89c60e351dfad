"""Has the graph drifted? Two windows scored by one detector, whether they differ by more than chance, and in what."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.calibration import Judged, judge
from degem.detectors.base import Detector
from degem.drift import Drift, drifted_columns, drifted_groups
from degem.explain import class_names
from degem.graph import as_graph
from degem.groups import Groups, by_class, by_degree

MAX_DISTINCT = 2_000


@dataclasses.dataclass(frozen=True)
class PermutationTest:
    """One statistic in two windows.

    Arguments:
        name: The statistic.
        reference: Its value in the reference window.
        current: Its value in the current one.
        p_value: How often a random division of all nodes differs at least as much, in either direction.
    """

    name: str
    reference: float
    current: float
    p_value: float


@dataclasses.dataclass(frozen=True)
class GroupShare:
    """The share flagged in one group of nodes, NaN where a window has none such.

    Arguments:
        name: The group.
        reference_size: Its nodes in the reference window.
        current_size: Its nodes in the current one.
        reference_share: The share of them flagged there.
        current_share: The share of them flagged here.
    """

    name: str
    reference_size: int
    current_size: int
    reference_share: float
    current_share: float


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What two windows have in common, and what not.

    Arguments:
        tests: The permutation tests: of the mean score, and of the share flagged.
        breakdowns: The share flagged, by the name of what the nodes are grouped by.
        drifts: The columns, classes and degrees that differ by more than chance, those of each kind by effect.
        alpha: The false-alarm rate of the flags.
        reference_scores: The scores of the reference window.
        current_scores: The scores of the current window.
        calibration_scores: The scores of the detector's calibration nodes.
    """

    tests: tuple[PermutationTest, ...]
    breakdowns: dict[str, tuple[GroupShare, ...]]
    drifts: tuple[Drift, ...]
    alpha: float
    reference_scores: NDArray[np.float64]
    current_scores: NDArray[np.float64]
    calibration_scores: NDArray[np.float64]

    @property
    def p_value(self) -> float:
        """One p-value for all tests (Bonferroni): small means drift."""
        return min(1.0, len(self.tests) * min(test.p_value for test in self.tests))

    def drifted(self, level: float) -> bool:
        """Whether the windows differ at this level: the share of comparisons without drift that may say so."""
        return self.p_value <= level

    def to_dict(self) -> dict[str, Any]:
        """The comparison without the scores themselves, as plain values."""
        sizes = {"reference_nodes": len(self.reference_scores), "current_nodes": len(self.current_scores)}
        parts = {name: value for name, value in dataclasses.asdict(self).items() if not name.endswith("_scores")}
        return {"p_value": self.p_value, **sizes, **parts}


def compare(
    detector: Detector,
    reference: Any,
    current: Any,
    *,
    alpha: float = 0.05,
    num_permutations: int = 999,
    seed: int = 0,
) -> Comparison:
    """Score two windows and test whether the current one differs from the reference.

    Nodes that the detector was fitted on do not count, as they score low for that alone. So the reference may be the
    training graph: its held-out nodes are compared with those that are new in the current graph, scored there as well.
    The tests take nodes as exchangeable between the windows. Scores of neighbours are alike, which makes p-values
    smaller than they should be.

    Arguments:
        detector: A fitted detector.
        reference: The graph of the reference window.
        current: The graph of the current window.
        alpha: The false-alarm rate of the flags.
        num_permutations: Random divisions a test draws; the smallest p-value is 1 / (num_permutations + 1).
        seed: Seed of the divisions.

    Example:
        >>> from degem import DeGEM
        >>> from degem.data.demo import digits_graph
        >>> graph = digits_graph()
        >>> detector = DeGEM(num_epochs=2, latent_dim=16).fit(graph)
        >>> compare(detector, graph, graph).drifted(0.05)
        False
    """
    graphs = [as_graph(reference), as_graph(current)]
    windows = _counted(detector, *(judge(detector, graph) for graph in graphs))
    scored = [judged.scored.of(rows) for judged, rows in windows]
    flags = [judged.flags(alpha=alpha)[rows] for judged, rows in windows]
    rng = np.random.default_rng(seed)
    tests = (
        permutation_test("mean score", scored[0].scores, scored[1].scores, num_permutations, rng),
        permutation_test("share flagged", flags[0], flags[1], num_permutations, rng),
    )
    both = by_degree(np.concatenate([judged.graph.degrees[rows] for judged, rows in windows]))
    breakdowns, num_first = {"degree": _shares(both, flags)}, len(flags[0])
    everyone = graphs[0], np.arange(graphs[0].num_nodes)  # a fit does not change what features are
    drifts = drifted_columns(detector, everyone, (windows[1][0].graph, windows[1][1])) + drifted_groups(both, num_first)
    chances = [each.probabilities for each in scored if each.probabilities is not None]
    if chances:
        both = by_class(np.concatenate([each.argmax(axis=1) for each in chances]), class_names(detector))
        breakdowns = {"predicted class": _shares(both, flags)} | breakdowns
        drifts += drifted_groups(both, num_first)
    first, second = (np.asarray(each.scores, dtype=np.float64) for each in scored)
    return Comparison(tests, breakdowns, tuple(drifts), alpha, first, second, windows[0][0].calibration_scores)


def _counted(detector: Detector, before: Judged, now: Judged) -> list[tuple[Judged, NDArray[np.int64]]]:
    """The nodes of each window that count, and where they are scored."""
    new = detector.fit_nodes_.new_in(now.graph)
    training = before.places is not None and not detector.fit_nodes_.new_in(before.graph).any()
    if training and now.places is not None and new.any():
        held_out = ~detector.fit_nodes_.seen_in(now.graph) & ~new
        if held_out.any():
            return [(now, np.flatnonzero(held_out)), (now, np.flatnonzero(new))]
    return [(judged, _unseen(detector, judged)) for judged in (before, now)]


def _unseen(detector: Detector, judged: Judged) -> NDArray[np.int64]:
    """The nodes of a graph that the detector was not fitted on; all, where the graph is another or has no such."""
    unseen = ~detector.fit_nodes_.seen_in(judged.graph)
    return np.flatnonzero(unseen) if judged.places is not None and unseen.any() else np.arange(judged.graph.num_nodes)


def permutation_test(
    name: str, reference: ArrayLike, current: ArrayLike, num_permutations: int, rng: np.random.Generator
) -> PermutationTest:
    r"""Two-sided permutation test of a difference in means, :math:`p = (1 + \#\{|T^*| \ge |T|\}) / (B + 1)`.

    Values are first gathered into at most ``MAX_DISTINCT`` groups of equal size, each standing for its mean. A random
    division then is one multivariate hypergeometric draw of group counts, so the cost does not follow the number of
    nodes, and the test keeps its level: gathering looks at both windows alike.

    Arguments:
        name: The name of the statistic.
        reference: Values in the reference window.
        current: Values in the current window.
        num_permutations: Random divisions :math:`B`.
        rng: Where they come from.

    Example:
        >>> test = permutation_test("mean", [1.0] * 20, [2.0] * 20, 99, np.random.default_rng(0))
        >>> test.p_value
        0.01
    """
    first, second = np.asarray(reference, dtype=np.float64), np.asarray(current, dtype=np.float64)
    pooled = np.concatenate([first, second])
    codes = _gathered(pooled)
    counts = np.bincount(codes)
    values = np.bincount(codes, weights=pooled) / counts
    own = np.bincount(codes[len(first) :], minlength=len(counts))
    draws = rng.multivariate_hypergeometric(counts, len(second), size=num_permutations, method="marginals")
    centre = len(second) / len(pooled) * (values @ counts)  # the expected sum: farther from it = more different
    observed = abs(own @ values - centre)
    extreme = int(np.count_nonzero(np.abs(draws @ values - centre) >= observed * (1 - 1e-9)))
    return PermutationTest(name, float(first.mean()), float(second.mean()), (1 + extreme) / (num_permutations + 1))


def _gathered(pooled: NDArray[np.float64]) -> NDArray[np.int64]:
    """The group of each value: one a distinct value, or ``MAX_DISTINCT`` of about equal size where there are more."""
    distinct, codes = np.unique(pooled, return_inverse=True)
    if len(distinct) <= MAX_DISTINCT:
        return codes
    edges = np.quantile(pooled, np.arange(1, MAX_DISTINCT) / MAX_DISTINCT)
    return np.unique(np.searchsorted(edges, pooled), return_inverse=True)[1]


def _shares(both: Groups, flags: list[NDArray[np.int64]]) -> tuple[GroupShare, ...]:
    """The share flagged by group, where ``both`` groups the nodes of the two windows, one after the other."""
    halves, count = np.split(both.codes, [len(flags[0])]), len(both.labels)
    sizes = np.stack([np.bincount(codes, minlength=count) for codes in halves])
    hits = [np.bincount(codes, weights=flag, minlength=count) for codes, flag in zip(halves, flags, strict=True)]
    with np.errstate(invalid="ignore"):  # 0 / 0: NaN
        shares = np.stack(hits) / sizes
    rows = zip(both.labels, sizes.T.tolist(), shares.T.tolist(), strict=True)
    return tuple(GroupShare(label, *size, *share) for label, size, share in rows if any(size))
