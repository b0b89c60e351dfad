"""``degem score``: from a model and a graph to a table of scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from degem.cli.common import (
    STDOUT,
    Alpha,
    AsJson,
    ByDegree,
    Columns,
    Device,
    Exchange,
    Exchangeable,
    FalseDiscoveryRate,
    FeatureColumns,
    GraphArgument,
    IdColumn,
    KeepColumns,
    LabelColumn,
    Mkdir,
    ModelArgument,
    NewSince,
    NodesFile,
    Onto,
    Threads,
    check_folder,
    check_table_path,
    judged_ids,
    open_graph,
    open_onto,
    prepare_machine,
    print_json,
    write_table,
)
from degem.cli.messages import LOGGER, tell
from degem.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from degem.calibration import OnlineFDR


def score(
    model: ModelArgument,
    graph: GraphArgument,
    out: Annotated[Path, typer.Option(metavar="TABLE", help="A .parquet or .csv file; - for CSV on standard output.")],
    mkdir: Mkdir = False,
    alpha: Alpha = 0.05,
    fdr: FalseDiscoveryRate = None,
    new_since: NewSince = None,
    nodes: NodesFile = None,
    onto: Onto = None,
    online: Annotated[
        Path | None,
        typer.Option(metavar="STATE", help="With --fdr: one bound over all calls that share this file of state."),
    ] = None,
    by_degree: ByDegree = False,
    exchangeable: Exchange = Exchangeable.nodes,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    feature_columns: FeatureColumns = None,
    keep_columns: KeepColumns = None,
    device: Device = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Score every node of GRAPH: higher = more out-of-distribution.

    The table has one row a node: node_id, score, p_value, is_ood, predicted_class, class_probability. Where GRAPH has
    grown from the graph of the fit, p-values compare with calibration nodes as they score there now.

    Example: degem score model march/ --new-since february/ --out scores.parquet --alpha 0.05
    """
    from degem import Detector
    from degem.cli.progress import progress_bar
    from degem.training import Progress

    check_table_path(out)
    check_folder(out, mkdir)
    check_folder(online, mkdir)
    if as_json and out == STDOUT:
        raise ParameterError("--json and --out - both write to standard output: keep one")
    if onto is not None and (new_since or nodes):
        raise ParameterError("--onto judges the nodes of GRAPH: leave out --new-since and --nodes")
    if online is not None and fdr is None:
        raise ParameterError("--online STATE bounds a false discovery rate: say which with --fdr")
    if online is not None and new_since is None and nodes is None and onto is None:
        raise ParameterError("--online STATE judges arrivals: say which with --new-since or --nodes")
    prepare_machine(threads, device)
    detector = Detector.load(model, device=device)
    with progress_bar() as on_progress:
        on_progress(Progress("read", 0, 1))
        columns = Columns(id_column, label_column, feature_columns, keep_columns)
        if onto is None:
            loaded = open_graph(graph, columns, features=detector.feature_names_)
            only = judged_ids(loaded, detector, model, columns, new_since, nodes)
        else:
            before, loaded = open_onto(graph, onto, columns, features=detector.feature_names_)
            only = loaded.node_ids[before.num_nodes :].tolist()
        on_progress(Progress("score", 0, 1))
        table = detector.score_table(
            loaded,
            alpha=alpha,
            fdr=None if online else fdr,
            only=only,
            by_degree=by_degree,
            exchangeable=exchangeable.value,
        )
    if online is not None and fdr is not None:
        stream = stream_at(online, fdr)
        table["is_ood"] = stream.decide(table["p_value"].to_numpy())
    write_table(table, out)
    if online is not None:
        stream.save(online)  # after the table: a run that fails may be repeated
    flagged = int(table["is_ood"].sum())
    if online is None and exchangeable is Exchangeable.nodes and not by_degree:
        _explain(table, len(detector.calibration_), alpha, fdr)
    if as_json:
        print_json({"scores": str(out), "nodes": len(table), "flagged": flagged})
        return
    level = f"a false-alarm rate of {alpha:g}" if fdr is None else f"a false discovery rate of {fdr:g}"
    tell(f"{flagged:,} of {len(table):,} nodes flagged at {level}: {out}", err=out == STDOUT)


def _explain(table: pd.DataFrame, num_calibration: int, alpha: float, fdr: float | None) -> None:
    """Say why so many nodes are flagged, or none."""
    from degem.cli.flagged import why_many, why_none

    flagged, told = int(table["is_ood"].sum()), None
    if fdr is None:
        told = why_many(flagged, len(table), alpha, num_calibration)
    elif len(table) and not flagged:
        told = why_none(float(table["p_value"].min()), len(table), fdr, num_calibration)
    if told is not None:
        LOGGER.warning("%s", told)


def stream_at(path: Path, fdr: float) -> OnlineFDR:
    """The stream whose state is in a file, or a new one."""
    from degem.calibration import OnlineFDR

    if not path.exists():
        return OnlineFDR(fdr)
    stream = OnlineFDR.load(path)
    if stream.fdr != fdr:
        raise ParameterError(f"--online {path} was begun with --fdr {stream.fdr:g}: keep to it, or name another file")
    return stream
