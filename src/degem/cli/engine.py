"""``--engine ray``: the options that say where work is done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from degem.cli.common import print_json, print_table
from degem.cli.options import Inputs, listed
from degem.errors import ParameterError

if TYPE_CHECKING:
    from degem import Detector, Graph
    from degem.engine import Ray
    from degem.training import OnProgress

    Place = Callable[[OnProgress], AbstractContextManager[Any]]


class Engine(StrEnum):
    """Where work is done."""

    local = "local"
    ray = "ray"


EngineName = Annotated[Engine, typer.Option("--engine", help="ray: spread over a Ray cluster, see docs/cluster.md.")]
Address = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Of Ray: auto, local, HOST:PORT or ray://HOST:PORT.", show_default="local"),
]
StoreUri = Annotated[
    str | None,
    typer.Option("--store", metavar="URI", help="With --engine ray: a folder all nodes see, or s3://…, gs://…."),
]


def place_of(engine: Engine, address: str | None, store: str | None) -> Place:
    """Where work is done, as a context that is told a listener to progress."""
    if engine is Engine.local:
        if address is not None or store is not None:
            raise ParameterError("--address and --store belong to --engine ray: add it")
        return lambda on_progress: nullcontext()
    if store is None:
        raise ParameterError("--engine ray needs --store URI: a folder that all nodes see, or s3://…")
    from degem.engine import Ray

    return lambda on_progress: Ray(store, address or "local", on_progress)


def graph_there(cluster: Ray | None, name: str, inputs: Inputs, **how: Any) -> Graph:
    """The graph that GRAPH stands for; partitioned Parquet is read by the cluster. ``how`` as in ``Inputs.graph``."""
    if cluster is not None:
        from degem.engine import is_partitioned, read_partitioned

        if is_partitioned(Path(name)):
            features = listed(inputs.feature_columns)
            columns = {"id_column": inputs.id_column, "label_column": inputs.label_column}
            return read_partitioned(cluster, Path(name), **columns, feature_columns=features)
    return inputs.graph(name, **how)


def tell_plan(detector: Detector, graph: Graph, cluster: tuple[int, int, str], as_json: bool) -> None:
    """Print what a fit takes on so many machines, with so many cores and so much memory each."""
    from degem import DeGEM
    from degem.detectors.degem.detector import used_hops
    from degem.engine.plan import Sizes, cluster_of, planned

    if not isinstance(detector, DeGEM):
        raise ParameterError(f"--dry-run: {detector.name} cannot tell what it takes; degem can")
    columns = min(graph.num_features, detector.projection_dim)
    sizes = Sizes(
        graph.num_nodes,
        graph.adjacency.nnz,
        graph.num_features,
        columns,
        used_hops(detector.num_hops),
        graph.num_classes,
    )
    stages = planned(sizes, cluster_of(*cluster))
    hours = sum(stage.seconds for stage in stages) / 3600
    disk, edges = sum(stage.written for stage in stages), sizes.edge_bytes
    if as_json:
        print_json({"stages": [asdict(stage) for stage in stages], "hours": hours, "store_bytes": disk})
        return
    rows = [
        (stage.name, f"{stage.tasks:,}", *map(_gib, (stage.read, stage.written, stage.memory)), f"{stage.seconds:,.0f}")
        for stage in stages
    ]
    print_table(("stage", "tasks", "GiB read", "GiB written", "GiB a task", "seconds"), rows)
    driver = max(stage.memory for stage in stages if stage.tasks == 1)
    longest = max(stages, key=lambda stage: stage.seconds).name
    streamed = "; more than half of a machine's memory: they are streamed from its disk at each hop"
    typer.echo(
        f"{graph!r} on {cluster[0]} nodes of {cluster[1]} cores and {cluster[2]}: about {hours:,.2f} hours, most of it "
        f"{longest}; {_gib(disk)} GiB of the store; {_gib(driver)} GiB of memory where the command runs; {_gib(edges)} "
        "GiB of edges are mapped on each machine" + (streamed if edges > cluster_of(*cluster)[0].memory / 2 else "")
    )


def _gib(size: float) -> str:
    return f"{size / 2**30:,.2f}"
