"""``degem serve``: a model behind paths, for a graph that grows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from degem.cli import options
from degem.cli.messages import tell


@options.takes_inputs
def serve(
    model: options.ModelArgument,
    graph: Annotated[str, typer.Option(metavar="GRAPH", help="The graph that the first event meets.")],
    state: Annotated[Path, typer.Option(metavar="FOLDER", help="Where events and the graph are kept.")] = Path(
        "degem-state"
    ),
    database: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Another database for the events.", show_default="SQLite in --state"),
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen; other machines need tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    alpha: options.Alpha = 0.05,
    online_fdr: Annotated[float, typer.Option(help="False discovery rate over the stream of arrivals.")] = 0.1,
    tolerance: Annotated[
        float, typer.Option(min=0, max=0.1, help="Share of a row's length by which it may be left to change.")
    ] = 1e-3,
    full_every: Annotated[
        float, typer.Option(min=1, help="Seconds between scoring the whole of a changed graph.")
    ] = 600,
    tokens: Annotated[
        Path | None, typer.Option(metavar="FILE", help="SCOPE[,SCOPE] TOKEN a line.", show_default="$DEGEM_TOKENS")
    ] = None,
    max_body: Annotated[int, typer.Option(min=1000, help="Bytes of one request.")] = 16 << 20,
    max_nodes: Annotated[int, typer.Option(min=1, help="Nodes in one request.")] = 10_000,
    max_edges: Annotated[int, typer.Option(min=1, help="Edges in one request.")] = 100_000,
    max_seconds: Annotated[float, typer.Option(min=0.1, help="Seconds for one request.")] = 30.0,
    max_rate: Annotated[float, typer.Option(min=1, help="Requests a second of one client.")] = 500.0,
    ssl_certfile: Annotated[Path | None, typer.Option(help="TLS: the certificate.")] = None,
    ssl_keyfile: Annotated[Path | None, typer.Option(help="TLS: its key.")] = None,
    *,
    inputs: options.Inputs,
) -> None:
    """Serve MODEL for a graph whose nodes and edges come and go: events in, scores out, and a page at /.

    Requests and refreshes are threads already: each computes on one, unless --threads says more.

    Example: degem serve model --graph my_graph/
    """
    from degem.serve.access import Access, check_host
    from degem.serve.limits import Limits
    from degem.serve.running import opened, run
    from degem.serve.service import Settings

    access = Access.given(tokens)
    check_host(host, access)
    inputs = dataclasses.replace(inputs, threads=inputs.threads or 1)  # products are small, threads would wait
    detector = inputs.detector(model)
    loaded = inputs.graph(graph, model=detector)
    settings = Settings(alpha, online_fdr, tolerance, full_every)
    with opened(detector, loaded, state, database, settings) as service:
        scheme = "http" if ssl_certfile is None else "https"
        tell(f"serving {detector.name} at {scheme}://{host}:{port}/", err=True)
        limits = Limits(max_body, max_nodes, max_edges, seconds=max_seconds, rate=max_rate)
        run(service, access, limits, host=host, port=port, certificate=ssl_certfile, key=ssl_keyfile)
