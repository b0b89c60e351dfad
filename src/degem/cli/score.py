"""``degem score``: from a model and a graph to a table of scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from degem.cli.common import STDOUT, check_folder, check_table_path, ids_in, print_json, write_table
from degem.cli.engine import Address, Engine, EngineName, StoreUri, graph_there, place_of
from degem.cli.messages import LOGGER, tell
from degem.cli.options import (
    Alpha,
    AsJson,
    ByDegree,
    Exchangeable,
    FalseDiscoveryRate,
    GraphArgument,
    Inputs,
    Mkdir,
    ModelArgument,
    takes_inputs,
)
from degem.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from degem import Detector, Graph


@takes_inputs
def score(
    model: ModelArgument,
    graph: GraphArgument,
    out: Annotated[
        Path,
        typer.Option(
            metavar="TABLE", help="A .parquet or .csv file; - for CSV on standard output; with --engine ray a folder."
        ),
    ],
    mkdir: Mkdir = False,
    alpha: Alpha = 0.05,
    fdr: FalseDiscoveryRate = None,
    new_since: Annotated[
        str | None,
        typer.Option(
            metavar="GRAPH|MODEL", help="Judge only nodes that are not in this graph, or were not there at MODEL's fit."
        ),
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", metavar="FILE", help="Judge only the nodes with the ids in this file, one a line."),
    ] = None,
    onto: Annotated[
        str | None,
        typer.Option(
            metavar="GRAPH", help="Join the new nodes in GRAPH, a folder, to this graph, and judge only them."
        ),
    ] = None,
    online: Annotated[
        Path | None,
        typer.Option(metavar="STATE", help="With --fdr: one bound over all calls that share this file of state."),
    ] = None,
    by_degree: ByDegree = False,
    exchangeable: Annotated[
        Exchangeable, typer.Option(help="edges: the well-connected arrive first, so weigh by 1 / degree.")
    ] = Exchangeable.nodes,
    *,
    inputs: Inputs,
    engine: EngineName = Engine.local,
    address: Address = None,
    store: StoreUri = None,
    as_json: AsJson = False,
) -> None:
    """Score every node of GRAPH: higher = more out-of-distribution.

    The table has one row a node: node_id, score, p_value, is_ood, predicted_class, class_probability. Where GRAPH has
    grown from the graph of the fit, p-values compare with calibration nodes as they score there now.

    Example: degem score model march/ --new-since february/ --out scores.parquet --alpha 0.05
    """
    from degem.calibration import OnlineFDR
    from degem.cli.progress import progress_bar
    from degem.training import Progress

    write: Callable[[pd.DataFrame, Path], None] = write_table
    if engine is Engine.ray and out.suffix == "" and out != STDOUT:
        from degem.engine import write_partitioned

        write = write_partitioned
    else:
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
    place = place_of(engine, address, store)
    detector = inputs.detector(model)
    with progress_bar() as on_progress, place(on_progress) as cluster:
        on_progress(Progress("read", 0, 1))
        if onto is None:
            loaded = graph_there(cluster, graph, inputs, model=detector)
            only = judged_ids(loaded, detector, model, inputs, new_since, nodes)
        else:
            before, loaded = inputs.graph_joined(graph, onto, detector)
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
        with OnlineFDR.shared(online, fdr) as stream:
            table["is_ood"] = stream.decide(table["p_value"].to_numpy())
            write(table, out)  # before the state: a run that fails may be repeated
    else:
        write(table, out)
    flagged = int(table["is_ood"].sum())
    if online is None and exchangeable is Exchangeable.nodes and not by_degree:
        _explain(table, len(detector.calibration_), alpha, fdr)
    if as_json:
        print_json({"scores": str(out), "nodes": len(table), "flagged": flagged})
        return
    level = f"a false-alarm rate of {alpha:g}" if fdr is None else f"a false discovery rate of {fdr:g}"
    tell(f"{flagged:,} of {len(table):,} nodes flagged at {level}: {out}", err=out == STDOUT)


def judged_ids(
    graph: Graph, detector: Detector, model: Path, inputs: Inputs, new_since: str | None, nodes: Path | None
) -> list[str] | None:
    """The ids of the nodes to judge, as the flags say; None for all."""
    import numpy as np

    if nodes is not None:
        if new_since is not None:
            raise ParameterError("--nodes and --new-since both say which nodes to judge: keep one")
        return ids_in(nodes)
    if new_since is None:
        return None
    if Path(new_since).resolve() == model.resolve():
        new = detector.fit_nodes_.new_in(graph)
    else:
        before = inputs.bare_graph(new_since)
        new = ~np.isin(graph.node_ids.astype(str), before.node_ids.astype(str))
    return [str(name) for name in graph.node_ids[new].tolist()]


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
