"""``degem score``: from a model and a graph to a table of scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from degem.cli.common import (
    Alpha,
    AsJson,
    ByDegree,
    Columns,
    Device,
    FalseDiscoveryRate,
    FeatureColumns,
    GraphArgument,
    IdColumn,
    KeepColumns,
    LabelColumn,
    ModelArgument,
    Threads,
    check_table_path,
    open_graph,
    prepare_machine,
    print_json,
    write_table,
)


def score(
    model: ModelArgument,
    graph: GraphArgument,
    out: Annotated[Path, typer.Option(metavar="TABLE", help="Where the scores go: a .parquet or .csv file.")],
    alpha: Alpha = 0.05,
    fdr: FalseDiscoveryRate = None,
    by_degree: ByDegree = False,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    feature_columns: FeatureColumns = None,
    keep_columns: KeepColumns = None,
    device: Device = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Score every node of GRAPH: higher = more out-of-distribution.

    The table has one row a node: node_id, score, p_value, is_ood, predicted_class, class_probability.

    Example: degem score model my_graph/ --out scores.parquet --alpha 0.05
    """
    from degem import Detector
    from degem.cli.progress import progress_bar
    from degem.training import Progress

    check_table_path(out)
    prepare_machine(threads, device)
    detector = Detector.load(model, device=device)
    with progress_bar() as on_progress:
        on_progress(Progress("read", 0, 1))
        columns = Columns(id_column, label_column, feature_columns, keep_columns)
        loaded = open_graph(graph, columns, features=detector.feature_names_)
        on_progress(Progress("score", 0, 1))
        table = detector.score_table(loaded, alpha=alpha, fdr=fdr, by_degree=by_degree)
    write_table(table, out)
    flagged = int(table["is_ood"].sum())
    if as_json:
        print_json({"scores": str(out), "nodes": len(table), "flagged": flagged})
        return
    level = f"a false-alarm rate of {alpha:g}" if fdr is None else f"a false discovery rate of {fdr:g}"
    typer.echo(f"{flagged:,} of {len(table):,} nodes flagged at {level}: {out}")
