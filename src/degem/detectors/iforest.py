"""An isolation forest on features: what a user would try first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from degem.detectors.base import ScoreResult
from degem.detectors.features import FeatureDetector
from degem.detectors.split import TrainingSet
from degem.errors import ModelFileError
from degem.graph import Graph
from degem.model_file import tensor_of
from degem.ops.features import dense
from degem.training import History, OnProgress

Trees = dict[str, NDArray[Any]]
TREES = dict.fromkeys(("roots", "features", "left", "right"), torch.int64)
TREES |= dict.fromkeys(("thresholds", "path_left"), torch.float64)


@dataclass(kw_only=True, eq=False)
class IForest(FeatureDetector):
    r"""How few random splits set a node apart: :math:`2^{-\bar h(x) / c}` (Liu et al. 2008), scikit-learn's defaults.

    :math:`\bar h` is the mean depth at which a node is isolated in 100 trees, :math:`c` that of a random search tree.
    The trees are kept as arrays, so that a model file holds no pickle.

    Arguments:
        neighbour_means: Append the mean features of a node's neighbours to its own.
    """

    neighbour_means: bool = False

    name = "iforest"

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        from sklearn.ensemble import IsolationForest  # slow to load, and a detector that is only described does without

        forest = IsolationForest(random_state=training.seed).fit(self._training_rows(training))
        trees = [tree.tree_ for tree in forest.estimators_]
        starts = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
        self.trees_: Trees = {
            "roots": starts,
            "features": np.concatenate([tree.feature for tree in trees]),
            "thresholds": np.concatenate([tree.threshold for tree in trees]),
            "left": np.concatenate([tree.children_left + start for tree, start in zip(trees, starts, strict=True)]),
            "right": np.concatenate([tree.children_right + start for tree, start in zip(trees, starts, strict=True)]),
            "path_left": np.concatenate([path_length(tree.n_node_samples) for tree in trees]),
        }
        self.normalizer_ = float(path_length(np.array([forest._max_samples]))[0])
        return {}

    def _score(self, graph: Graph) -> ScoreResult:
        normalizer = max(self.normalizer_, 1e-12)
        return self._scored_by_block(graph, lambda rows: 2 ** (-mean_depth(dense(rows), self.trees_) / normalizer))

    def _state(self) -> dict[str, torch.Tensor]:
        trees = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in self.trees_.items()}
        return {**trees, "normalizer": torch.tensor(self.normalizer_, dtype=torch.float64)}

    def _restore(self, state: dict[str, torch.Tensor]) -> None:
        self.normalizer_ = float(tensor_of(state, "normalizer", torch.float64))
        num_nodes = len(state.get("features", ()))
        sizes = {name: None if name == "roots" else num_nodes for name in TREES}
        self.trees_ = {name: tensor_of(state, name, dtype, sizes[name]).numpy() for name, dtype in TREES.items()}
        _check_trees(self.trees_, self._width)


@dataclass(kw_only=True, eq=False)
class IForestOneHop(IForest):
    """:class:`IForest` on a node's own features and the mean of its neighbours'."""

    neighbour_means: bool = True

    name = "iforest-1hop"


def _check_trees(trees: Trees, width: int) -> None:
    """Refuse trees that point outside themselves, or back: a walk down them would not end."""
    roots, places = trees["roots"], np.arange(len(trees["features"]))
    inner = trees["features"] >= 0
    inside = [(roots >= 0) & (roots < len(places)), trees["features"] < width]
    inside += [((trees[side] > places) & (trees[side] < len(places)))[inner] for side in ("left", "right")]
    if len(roots) == 0 or not all(part.all() for part in inside):
        raise ModelFileError("the model file's trees point outside themselves: fit and save the model again")


def path_length(num_samples: NDArray[np.int64]) -> NDArray[np.float64]:
    r"""The mean depth of a random search tree on n samples, :math:`2 (\ln(n-1) + \gamma) - 2 (n-1)/n`."""
    n = np.maximum(num_samples, 2).astype(np.float64)
    length = 2 * (np.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n
    return np.where(num_samples > 2, length, np.where(num_samples == 2, 1.0, 0.0))


def mean_depth(rows: NDArray[np.float32], trees: Trees) -> NDArray[np.float64]:
    """The mean over trees of the depth at which each row ends, with what its leaf would still take."""
    total = np.zeros(len(rows))
    everyone = np.arange(len(rows))
    for root in trees["roots"]:
        at, active = np.full(len(rows), root), everyone
        while True:
            active = active[trees["features"][at[active]] >= 0]
            if len(active) == 0:
                break
            here = at[active]
            goes_left = rows[active, trees["features"][here].astype(np.int64)] <= trees["thresholds"][here]
            at[active] = np.where(goes_left, trees["left"][here], trees["right"][here])
            total[active] += 1
        total += trees["path_left"][at]
    return total / len(trees["roots"])
