"""``degem update``: a model fitted again on its graph as it has grown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from degem.cli.common import (
    Alpha,
    AsJson,
    Columns,
    Device,
    Exposure,
    FeatureColumns,
    GraphArgument,
    IdColumn,
    KeepColumns,
    LabelColumn,
    Mkdir,
    ModelArgument,
    ModelOut,
    Threads,
    check_folder,
    exposed_nodes,
    open_graph,
    prepare_machine,
    print_json,
)
from degem.cli.fit import fit_what_fits
from degem.cli.messages import tell

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from degem import Detector, Graph


def update(
    model: ModelArgument,
    graph: GraphArgument,
    out: ModelOut = None,
    mkdir: Mkdir = False,
    alpha: Alpha = 0.05,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    feature_columns: FeatureColumns = None,
    keep_columns: KeepColumns = None,
    exposure: Exposure = None,
    device: Device = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Fit MODEL again on GRAPH as it has grown, with the method and settings that it was fitted with.

    In-distribution are the nodes labelled now. For a model fitted without labels they are all nodes but those that it
    flags at --alpha and that have no label.

    Example: degem update model march/ --out model-march
    """
    from degem import Detector

    check_folder(out, mkdir)
    prepare_machine(threads, device)
    old = Detector.load(model, device=device)
    columns = Columns(id_column, label_column, feature_columns, keep_columns)
    loaded = open_graph(graph, columns, features=old.feature_names_, needed=[exposure])
    flagged = old.predict(loaded, alpha=alpha).astype(bool)
    new = type(old)(**old.get_params(deep=False))
    fit_what_fits(
        new,
        loaded,
        train_mask=None if old.classes_ else _trusted(loaded, old, flagged),
        keep_calibration_nodes=old.calibration_.features is not None,
        exposure=exposed_nodes(loaded, exposure),
    )
    now = new.predict(loaded, alpha=alpha)
    new.save(out or model)
    changes = {
        "training_nodes": (old.num_training_nodes_, new.num_training_nodes_),
        "calibration_nodes": (len(old.calibration_), len(new.calibration_)),
        "flagged": (float(flagged.mean()), float(now.mean())),
    }
    if as_json:
        pairs = {name: {"before": before, "after": after} for name, (before, after) in changes.items()}
        print_json({"model": str(out or model), "method": new.name, **pairs})
        return
    (trained, trains), (held, holds), (share, shares) = changes.values()
    tell(
        f"{new.name} fitted again on {trains:,} nodes ({trained:,} before), calibrated on {holds:,} ({held:,}); "
        f"{shares:.1%} of the graph's nodes flagged ({share:.1%}): {out or model}"
    )


def _trusted(graph: Graph, old: Detector, flagged: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The nodes to fit a model without labels on: of those it flags only labelled and calibration nodes.

    Calibration nodes are known to be in-distribution: without the high scores among them the new ones would be too low.
    """
    known = graph.labelled | old.calibration_.holds(graph.node_ids)
    return (known | ~flagged) & graph.masks.get("train", True)
