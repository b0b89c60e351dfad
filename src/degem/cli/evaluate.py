"""``degem evaluate``: how well a model finds nodes that are known to be OOD."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from degem.cli import options
from degem.cli.common import print_json, print_table, truth_column

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from degem import Graph

NAMES = {
    "auroc": "AUROC",
    "aupr_ood_positive": "AUPR (OOD positive)",
    "aupr_id_positive": "AUPR (ID positive)",
    "fpr95_ood_positive": "FPR95 (OOD positive: ID flagged at 95 % of OOD found)",
    "fpr95_id_positive": "FPR95 (ID positive: OOD accepted at 95 % of ID accepted)",
    "flagged_id": "flagged among ID nodes",
    "flagged_ood": "flagged among OOD nodes",
    "id_accuracy": "accuracy on ID nodes",
}


@options.takes_inputs
def evaluate(
    model: options.ModelArgument,
    graph: options.GraphArgument,
    ood: Annotated[str, typer.Option(metavar="COLUMN", help="Column that says which nodes are OOD (true or false).")],
    alpha: options.Alpha = 0.05,
    fdr: options.FalseDiscoveryRate = None,
    by_degree: options.ByDegree = False,
    *,
    inputs: options.Inputs,
    as_json: options.AsJson = False,
) -> None:
    """Score GRAPH and compare with the truth in one of its columns.

    Of a graph with a test mask only those ID nodes count; the others may have trained the model.

    Example: degem evaluate model my_graph/ --ood is_ood
    """
    detector = inputs.detector(model)
    loaded = inputs.graph(graph, model=detector, needed=[ood])
    is_ood = truth_column(loaded, ood)
    table = detector.score_table(loaded, alpha=alpha, fdr=fdr, by_degree=by_degree)
    is_id = judged(loaded, is_ood)
    figures = measured(table, loaded, is_id, is_ood)
    if as_json:
        print_json({"id_nodes": is_id.sum(), "ood_nodes": is_ood.sum(), **figures})
    else:
        title = f"{is_id.sum():,} ID and {is_ood.sum():,} OOD nodes"
        print_table(("", "%"), [(NAMES[name], f"{100 * value:.1f}") for name, value in figures.items()], title=title)


def judged(graph: Graph, is_ood: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The ID nodes that count: those of the test mask, or all where there is none."""
    return ~is_ood & graph.masks["test"] if "test" in graph.masks else ~is_ood


def measured(
    table: pd.DataFrame, graph: Graph, is_id: NDArray[np.bool_], is_ood: NDArray[np.bool_]
) -> dict[str, float]:
    """The figures of :data:`NAMES`, as shares of 1, for a score table of ``graph``."""
    import numpy as np

    from degem import metrics

    scores, flags = table["score"].to_numpy(), table["is_ood"].to_numpy()
    sides = scores[is_id], scores[is_ood]
    labelled = is_id & graph.labelled
    classes = (
        graph.labels[labelled] if graph.class_names is None else np.array(graph.class_names)[graph.labels[labelled]]
    )
    correct = table["predicted_class"].to_numpy()[labelled].astype(str) == classes.astype(str)
    return {
        "auroc": metrics.auroc_ood_positive(*sides),
        "aupr_ood_positive": metrics.aupr_ood_positive(*sides),
        "aupr_id_positive": metrics.aupr_id_positive(*sides),
        "fpr95_ood_positive": metrics.fpr95_ood_positive(*sides),
        "fpr95_id_positive": metrics.fpr95_id_positive(*sides),
        "flagged_id": float(flags[is_id].mean()),
        "flagged_ood": float(flags[is_ood].mean()),
        "id_accuracy": float(correct.mean()) if labelled.any() and table["predicted_class"].notna().all() else np.nan,
    }
