"""``degem fit``: from a graph to a model folder."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from degem.cli.common import (
    AsJson,
    Columns,
    Device,
    FeatureColumns,
    GraphArgument,
    IdColumn,
    KeepColumns,
    LabelColumn,
    Seed,
    Settings,
    Threads,
    method_named,
    open_graph,
    parsed_settings,
    prepare_machine,
    print_json,
    truth_column,
)
from degem.errors import ParameterError

if TYPE_CHECKING:
    from degem import Graph, NodeSet
    from degem.detectors.cost import Cost


def fit(
    graph: GraphArgument,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="Folder to write the model to.")],
    method: Annotated[str, typer.Option(help="The detector's name: see degem methods.")] = "degem",
    settings: Settings = None,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    feature_columns: FeatureColumns = None,
    keep_columns: KeepColumns = None,
    exposure: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that marks nodes known to be OOD, for methods that need such."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where a long fit keeps its state; removed at its end.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the --checkpoint of an interrupted fit.")
    ] = False,
    memory_budget: Annotated[
        float | None,
        typer.Option(
            min=1, metavar="MIB", help="Memory for hop features.", show_default="a quarter of what is free; then disk"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell the memory, disk and time a fit takes, and stop.")
    ] = False,
    seed: Seed = 0,
    device: Device = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Learn what the in-distribution nodes of GRAPH look like, and save the model.

    In-distribution are the labelled nodes, or all nodes of a graph without labels. A tenth of them (or the graph's val
    mask) is held out to calibrate p-values.

    Example: degem fit my_graph/ --label-column topic --out model --set num_hops=3
    """
    from degem import model_file
    from degem.checkpoint import checkpoints_in
    from degem.cli.progress import progress_bar
    from degem.training import Progress

    if resume and checkpoint is None:
        raise ParameterError("--resume needs the --checkpoint folder of the interrupted fit")
    kind = method_named(method)
    detector = kind(seed=seed, device=device or "cpu").set_params(**parsed_settings(kind, settings))
    if memory_budget is not None:
        detector.set_params(memory_budget=memory_budget)
    model_file.check_target(out)
    prepare_machine(threads, detector.device)
    columns = Columns(id_column, label_column, feature_columns, keep_columns)
    with progress_bar() as on_progress:
        on_progress(Progress("read", 0, 1))
        loaded = open_graph(graph, columns, needed=[exposure])
    cost = detector.estimate(loaded)
    if dry_run:
        _tell_cost(cost, loaded, method, as_json)
    if cost is not None:
        cost.refuse_what_cannot_fit()
    if dry_run:
        return
    if resume and checkpoint is not None and not checkpoints_in(checkpoint):
        typer.echo(f"degem: note: no checkpoint in {checkpoint}: the fit starts from the beginning", err=True)
    start = time.perf_counter()
    with progress_bar() as on_progress:
        detector.fit(
            loaded,
            exposure=_exposed(loaded, exposure),
            on_progress=on_progress,
            checkpoint=checkpoint,
            resume=resume,
        )
    seconds = time.perf_counter() - start
    detector.save(out)
    summary = {
        "model": str(out),
        "method": method,
        "nodes": loaded.num_nodes,
        "training_nodes": detector.num_training_nodes_,
        "calibration_nodes": len(detector.calibration_scores_),
        "classes": len(detector.classes_),
        "seconds": round(seconds, 3),
    }
    if as_json:
        print_json(summary)
        return
    typer.echo(
        f"{method} fitted on {detector.num_training_nodes_:,} nodes in {seconds:.1f} s, "
        f"calibrated on {len(detector.calibration_scores_):,}: {out}"
    )


def _tell_cost(cost: Cost | None, graph: Graph, method: str, as_json: bool) -> None:
    """Print what a fit will take."""
    if cost is None:
        raise ParameterError(f"--dry-run: {method} cannot tell what it takes; degem at its default training can")
    if as_json:
        print_json({"nodes": graph.num_nodes, "edges": graph.num_edges, **dataclasses.asdict(cost)})
        return
    typer.echo(
        f"{graph!r}: about {cost.memory_mib:,.0f} MiB of memory, {cost.disk_mib:,.0f} MiB of temporary files, "
        f"{cost.seconds:,.0f} s on two cores"
    )


def _exposed(graph: Graph, column: str | None) -> NodeSet | None:
    import numpy as np

    from degem import NodeSet

    return None if column is None else NodeSet(graph, np.flatnonzero(truth_column(graph, column)))
