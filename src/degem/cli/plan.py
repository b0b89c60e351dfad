"""``degem fit --engine ray --dry-run``: what a fit takes on a cluster."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from degem.cli.common import print_json, print_table
from degem.errors import ParameterError

if TYPE_CHECKING:
    from degem import Detector, Graph


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
