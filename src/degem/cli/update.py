"""``degem update``: a model fitted again on its graph as it has grown."""

from __future__ import annotations

from degem.cli import options
from degem.cli.common import answer, check_folder, exposed_nodes
from degem.cli.fit import timed_fit
from degem.cli.messages import progress_bar


@options.takes_inputs
def update(
    model: options.ModelArgument,
    graph: options.GraphArgument,
    out: options.ModelOut = None,
    mkdir: options.Mkdir = False,
    alpha: options.Alpha = 0.05,
    *,
    inputs: options.Inputs,
    exposure: options.Exposure = None,
    as_json: options.AsJson = False,
) -> None:
    """Fit MODEL again on GRAPH as it has grown, with the method and settings that it was fitted with.

    In-distribution are the nodes labelled now. For a model fitted without labels they are all nodes but those that have
    arrived since, have no label, and that it flags at --alpha: they are left out of the fit, and stay new.

    Example: degem update model march/ --out model-march
    """
    import numpy as np

    check_folder(out, mkdir)
    old = inputs.detector(model)
    loaded = inputs.graph(graph, model=old, needed=[exposure])
    flagged = old.predict(loaded, alpha=alpha) == 1
    new = type(old)(**old.get_params(deep=False))
    learnt, train_mask = loaded, None
    if not old.classes_:
        # What it was fitted on stays, flagged or not: without the high scores among it the new calibration nodes would
        # score too low, and in-distribution nodes be flagged too often.
        learnt = loaded.subgraph(~flagged | loaded.labelled | ~old.fit_nodes_.new_in(loaded))
        held_out = learnt.masks.get("val", np.zeros(learnt.num_nodes, dtype=np.bool_))
        train_mask = learnt.masks.get("train", ~held_out)  # labels, if there are any, do not say what is ID
    with progress_bar() as on_progress:
        timed_fit(
            new,
            learnt,
            on_progress,
            train_mask=train_mask,
            keep_calibration_nodes=old.calibration_.features is not None,
            exposure=exposed_nodes(learnt, exposure),
        )
    now = new.predict(loaded, alpha=alpha)
    new.save(out or model)
    changes = {
        "training_nodes": (old.num_training_nodes_, new.num_training_nodes_),
        "calibration_nodes": (len(old.calibration_), len(new.calibration_)),
        "flagged": (float(flagged.mean()), float(now.mean())),
    }
    pairs = {name: {"before": before, "after": after} for name, (before, after) in changes.items()}
    (trained, trains), (held, holds), (share, shares) = changes.values()
    answer(
        {"model": str(out or model), "method": new.name, **pairs},
        as_json,
        f"{new.name} fitted again on {trains:,} nodes ({trained:,} before), calibrated on {holds:,} ({held:,}); "
        f"{shares:.1%} of the graph's nodes flagged ({share:.1%}): {out or model}",
    )
