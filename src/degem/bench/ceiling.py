"""An upper mark for arrival: boosted trees that were shown OOD nodes of the same kind. No detector."""

from __future__ import annotations

import time
from dataclasses import asdict
from importlib.metadata import version

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.bench.store import Row
from degem.bench.summary import CEILING
from degem.graph import Graph
from degem.metrics import paper_metrics
from degem.ops.features import dense, row_counts
from degem.shifts import Growth

NUM_FOLDS, PROJECTION_DIM = 5, 64


def ceiling_row(growth: Growth, dataset: str, shift: str, seed: int) -> Row:
    """The row of one shift: each arrived node is judged by trees that were trained without it."""
    start = time.perf_counter()
    scores = cross_fitted(growth, seed)
    return Row(
        *(CEILING.method, dataset, shift, seed, "arrival"),
        **asdict(paper_metrics(scores[growth.new_id], scores[growth.ood])),
        fit_seconds=time.perf_counter() - start,
        version=version("degem"),
        parameters='{"label_rate": 1.0, "set": {}}',
    )


def cross_fitted(growth: Growth, seed: int) -> NDArray[np.float64]:
    """The log-odds of being OOD of every node, from trees that were fitted on the other folds.

    Arguments:
        growth: A grown graph; every node that is not among its OOD nodes is an ID example.
        seed: Seed of the folds and of the trees.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    is_ood = np.isin(np.arange(growth.graph.num_nodes), growth.ood)
    trees = HistGradientBoostingClassifier(class_weight="balanced", random_state=seed)
    folds = StratifiedKFold(NUM_FOLDS, shuffle=True, random_state=seed)
    columns = node_columns(growth.graph, seed)
    return np.asarray(cross_val_predict(trees, columns, is_ood, cv=folds, method="decision_function"))


def node_columns(graph: Graph, seed: int) -> NDArray[np.float64]:
    """What the trees see: own features and the means one and two hops away, projected where there are many columns.

    Beside them the log degree, the number of non-zero features, the lengths of the three, and how alike they are.
    """
    own = np.asarray(_projected(graph, seed), dtype=np.float64)
    mean = sp.csr_array(sp.diags_array(1 / np.maximum(graph.degrees, 1)) @ graph.adjacency)
    near = mean @ own
    far = mean @ near
    lengths = [np.linalg.norm(block, axis=1) for block in (own, near, far)]
    alike = [
        (first * second).sum(axis=1) / np.maximum(np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1), 1e-12)
        for first, second in ((own, near), (own, far), (near, far))
    ]
    return np.column_stack([own, near, far, np.log1p(graph.degrees), row_counts(graph.features), *lengths, *alike])


def _projected(graph: Graph, seed: int) -> NDArray[np.floating]:
    from sklearn.decomposition import TruncatedSVD

    if graph.num_features <= PROJECTION_DIM:
        return dense(graph.features)
    return np.asarray(TruncatedSVD(PROJECTION_DIM, random_state=seed).fit_transform(graph.features))
