"""``degem score``: from a model and a graph to a table of scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from degem.cli import options
from degem.cli.common import STDOUT, answer, check_folder, check_table_out, ids_in, write_table
from degem.cli.messages import LOGGER, progress_bar
from degem.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from degem import Detector, Graph

FAR = 2.0  # times alpha: a flagged share beyond it is worth a word
RARE = 1e-3  # if chance alone does so more rarely than this


@options.takes_inputs
def score(
    model: options.ModelArgument,
    graph: options.GraphArgument,
    out: Annotated[
        Path,
        typer.Option(
            metavar="TABLE", help="A .parquet or .csv file; - for CSV on standard output; with --engine ray a folder."
        ),
    ],
    mkdir: options.Mkdir = False,
    alpha: options.Alpha = 0.05,
    fdr: options.FalseDiscoveryRate = None,
    new_since: options.NewSince = None,
    nodes: options.Nodes = None,
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
    by_degree: options.ByDegree = False,
    exchangeable: Annotated[
        Literal["nodes", "edges"], typer.Option(help="edges: the well-connected arrive first, so weigh by 1 / degree.")
    ] = "nodes",
    *,
    inputs: options.Inputs,
    engine: options.Engine = "local",
    address: options.Address = None,
    store: options.StoreUri = None,
    as_json: options.AsJson = False,
) -> None:
    """Score every node of GRAPH: higher = more out-of-distribution.

    The table has one row a node: node_id, score, p_value, is_ood, predicted_class, class_probability. Where GRAPH has
    grown from the graph of the fit, p-values compare with calibration nodes as they score there now.

    Example: degem score model march/ --new-since february/ --out scores.parquet --alpha 0.05
    """
    from degem.calibration import OnlineFDR
    from degem.training import Progress

    write: Callable[[pd.DataFrame, Path], None] = write_table
    if engine == "ray" and out.suffix == "" and out != STDOUT:
        from degem.engine import write_partitioned

        write = write_partitioned
        check_folder(out, mkdir)
    else:
        check_table_out(out, mkdir, as_json)
    check_folder(online, mkdir)
    if onto is not None and (new_since or nodes):
        raise ParameterError("--onto judges the nodes of GRAPH: leave out --new-since and --nodes")
    if online is not None and fdr is None:
        raise ParameterError("--online STATE bounds a false discovery rate: say which with --fdr")
    if online is not None and new_since is None and nodes is None and onto is None:
        raise ParameterError("--online STATE judges arrivals: say which with --new-since or --nodes")
    place = options.place_of(engine, address, store)
    detector = inputs.detector(model)
    with progress_bar() as on_progress, place(on_progress) as cluster:
        on_progress(Progress("read", 0, 1))
        if onto is None:
            loaded = inputs.graph(graph, model=detector, cluster=cluster)
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
            exchangeable=exchangeable,
        )
    if online is not None and fdr is not None:
        with OnlineFDR.shared(online, fdr) as stream:
            table["is_ood"] = stream.decide(table["p_value"].to_numpy())
            write(table, out)  # before the state: a run that fails may be repeated
    else:
        write(table, out)
    flagged = int(table["is_ood"].sum())
    if online is None and exchangeable == "nodes" and not by_degree:
        _explain(table, len(detector.calibration_), alpha, fdr)
    level = f"a false-alarm rate of {alpha:g}" if fdr is None else f"a false discovery rate of {fdr:g}"
    document = {"scores": str(out), "nodes": len(table), "flagged": flagged}
    answer(document, as_json, f"{flagged:,} of {len(table):,} nodes flagged at {level}: {out}", err=out == STDOUT)


def judged_ids(
    graph: Graph, detector: Detector, model: Path, inputs: options.Inputs, new_since: str | None, nodes: Path | None
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
    flagged, told = int(table["is_ood"].sum()), None
    if fdr is None:
        told = why_many(flagged, len(table), alpha, num_calibration)
    elif len(table) and not flagged:
        told = why_none(float(table["p_value"].min()), len(table), fdr, num_calibration)
    if told is not None:
        LOGGER.warning("%s", told)


def why_none(smallest: float, num_nodes: int, fdr: float, num_calibration: int) -> str:
    r"""Why Benjamini–Hochberg flags no node: one alone is flagged at :math:`p \le q/m`, and :math:`p \ge 1/(n+1)`.

    Example:
        >>> why_none(0.01, 100, 0.1, 99)
        '--fdr 0.1 flags none of 100 nodes: 99 calibration nodes give no p-value below 1/100 = 0.01, and a single node
        is flagged at 0.1/100 = 0.001: 999 calibration nodes would do, or fewer nodes to judge (--new-since, --nodes)'
    """
    from degem.calibration import nodes_needed

    needed = nodes_needed(fdr / num_nodes)
    told = f"--fdr {fdr:g} flags none of {num_nodes:,} nodes"
    if num_calibration >= needed:
        return f"{told}: the smallest p-value, {smallest:.2g}, is too large"
    return (
        f"{told}: {num_calibration:,} calibration nodes give no p-value below 1/{num_calibration + 1} = "
        f"{1 / (num_calibration + 1):.2g}, and a single node is flagged at {fdr:g}/{num_nodes} = "
        f"{fdr / num_nodes:.2g}: {needed:,} calibration nodes would do, or fewer nodes to judge (--new-since, --nodes)"
    )


def chance_of(flagged: int, num_nodes: int, alpha: float, num_calibration: int) -> float:
    r"""The chance that as many nodes are flagged, or more, if all are exchangeable with the calibration nodes.

    Of :math:`m` nodes :math:`\mathrm{BetaBinomial}(m, k, n + 1 - k)` are flagged, :math:`k = \lfloor\alpha (n + 1)
    \rfloor`: of all orders of the :math:`n + m` scores each is as likely (Bates et al., *Testing for outliers with
    conformal p-values*, 2023).

    Arguments:
        flagged: How many are flagged.
        num_nodes: The number of judged nodes :math:`m`.
        alpha: The false-alarm rate.
        num_calibration: The number of calibration nodes :math:`n`.

    Example:
        >>> round(chance_of(1, 1, 0.05, 99), 6)
        0.05
    """
    from scipy.stats import betabinom

    rank = math.floor(alpha * (num_calibration + 1) + 1e-9)
    if rank == 0:
        return float(flagged == 0)
    return max(0.0, float(betabinom.sf(flagged - 1, num_nodes, rank, num_calibration + 1 - rank)))


def why_many(flagged: int, num_nodes: int, alpha: float, num_calibration: int) -> str | None:
    """What to say, and to do, where far more are flagged than the promise has it; None where they are not.

    Example:
        >>> why_many(8, 100, 0.05, 99)  # nothing strange: None
        >>> str(why_many(40, 100, 0.05, 99))[:73]
        '40.0% of 100 nodes are flagged, and --alpha 0.05 promises 5.0% of in-dist'
    """
    if flagged <= FAR * alpha * num_nodes:
        return None
    chance = chance_of(flagged, num_nodes, alpha, num_calibration)
    if chance > RARE:
        return None
    odds = f"1 in {1 / chance:,.0f}" if chance > 1e-9 else "less than 1 in a billion"
    return (
        f"{flagged / num_nodes:.1%} of {num_nodes:,} nodes are flagged, and --alpha {alpha:g} promises {alpha:.1%} of "
        f"in-distribution ones; with {num_calibration:,} calibration nodes the odds of that by chance are {odds}: many "
        "nodes are OOD, or the graph has drifted (degem compare tests it; degem calibrate with nodes known to be "
        "in-distribution, or degem update, makes up for it)"
    )
