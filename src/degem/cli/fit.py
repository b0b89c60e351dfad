"""``degem fit``: from a graph to a model folder."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from degem.cli.common import check_folder, exposed_nodes, print_json
from degem.cli.engine import Address, Engine, EngineName, StoreUri, graph_there, place_of, tell_plan
from degem.cli.messages import tell
from degem.cli.options import AsJson, Exposure, GraphArgument, Inputs, Mkdir, Seed, prepare_machine, takes_inputs
from degem.errors import ParameterError, one_line

if TYPE_CHECKING:
    from degem import Detector, Graph
    from degem.cli.engine import Place


@takes_inputs
def fit(
    graph: GraphArgument,
    out: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Folder to write the model to; only --dry-run does without.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a model.")] = False,
    mkdir: Mkdir = False,
    method: Annotated[str, typer.Option(help="The detector's name, see degem methods, or module:Class.")] = "degem",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; may be given many times."),
    ] = None,
    *,
    inputs: Inputs,
    exposure: Exposure = None,
    memory_budget: Annotated[
        float | None,
        typer.Option(
            min=1, metavar="MIB", help="Memory for hop features.", show_default="a quarter of what is free; then disk"
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Tell how columns are encoded, what memory, disk and time a fit takes, and stop."
        ),
    ] = False,
    engine: EngineName = Engine.local,
    address: Address = None,
    store: StoreUri = None,
    nodes: Annotated[int, typer.Option(min=1, help="With --engine ray --dry-run: machines.")] = 16,
    cpus: Annotated[int, typer.Option(min=1, help="Their cores, each.")] = 32,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Their memory, each.")] = "128G",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn what the in-distribution nodes of GRAPH look like, and save the model.

    In-distribution are the labelled nodes, or all nodes of a graph without labels. A tenth of them (or the graph's val
    mask) is held out to calibrate p-values.

    Example: degem fit my_graph/ --label-column topic --out model --set num_hops=3
    """
    from degem import Detector

    Detector.registry.check(method)
    kind = Detector.registry[method]
    detector = kind(seed=seed, device=inputs.device or "cpu").set_params(**_parsed_settings(kind, settings or []))
    if memory_budget is not None:
        detector.set_params(memory_budget=memory_budget)
    prepare_machine(inputs.threads, detector.device)
    if dry_run and engine is Engine.ray:
        tell_plan(detector, _read(graph, inputs, exposure), (nodes, cpus, memory), as_json)
        return
    place = place_of(engine, address, store)
    if dry_run:
        _tell_cost(detector, _read(graph, inputs, exposure), as_json)
        return
    out = _checked_target(out, force, mkdir)
    if engine is Engine.ray:
        loaded, seconds = _fitted_there(detector, place, graph, inputs, exposure)
    else:
        loaded = _read(graph, inputs, exposure)
        seconds = fit_what_fits(detector, loaded, exposure=exposed_nodes(loaded, exposure))
    detector.save(out)
    _tell_fit(detector, out, loaded, seconds, as_json)


def _parsed_settings(kind: type[Detector], settings: list[str]) -> dict[str, Any]:
    """The parameters that ``--set name=value`` stand for, checked against their type and range."""
    from degem import parameters

    found = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ParameterError(f"--set {setting}: write it as name=value")
        found[name.replace(".", "__")] = parameters.parse(kind, name, text)
    return found


def _checked_target(out: Path | None, force: bool, mkdir: bool) -> Path:
    from degem import model_file

    if out is None:
        raise ParameterError("--out MODEL is missing: it says where the model goes (only --dry-run does without)")
    check_folder(out, mkdir)
    model_file.check_target(out)
    if (out / model_file.DESCRIPTION).exists() and not force:
        raise ParameterError(f"{out} holds a model: choose another folder, or overwrite it with --force")
    return out


def _read(graph: str, inputs: Inputs, exposure: str | None) -> Graph:
    from degem.cli.progress import progress_bar
    from degem.training import Progress

    with progress_bar() as on_progress:
        on_progress(Progress("read", 0, 1))
        return inputs.graph(graph, needed=[exposure])


def fit_what_fits(detector: Detector, graph: Graph, **how: Any) -> float:
    """Fit what the machine has room for, ``how`` as in ``Detector.fit``; how many seconds it took."""
    from degem.cli.progress import progress_bar
    from degem.detectors.cost import Estimable

    if isinstance(detector, Estimable):
        detector.estimate(graph).refuse_what_cannot_fit()
    start = time.perf_counter()
    with progress_bar() as on_progress:
        detector.fit(graph, on_progress=on_progress, **how)
    return time.perf_counter() - start


def _fitted_there(
    detector: Detector, place: Place, name: str, inputs: Inputs, exposure: str | None
) -> tuple[Graph, float]:
    """Read a graph and fit in some place; the graph, and how many seconds both took."""
    from degem.cli.progress import progress_bar

    start = time.perf_counter()
    with progress_bar() as on_progress, place(on_progress) as cluster:
        graph = graph_there(cluster, name, inputs, needed=[exposure])
        detector.fit(graph, on_progress=on_progress, exposure=exposed_nodes(graph, exposure))
    return graph, time.perf_counter() - start


def _tell_cost(detector: Detector, graph: Graph, as_json: bool) -> None:
    """Print what a fit will take, and refuse what cannot fit."""
    from degem.detectors.cost import Estimable

    if not isinstance(detector, Estimable):
        raise ParameterError(f"--dry-run: {detector.name} cannot tell what it takes; degem can")
    cost = detector.estimate(graph)
    columns = {} if graph.schema is None else graph.schema.descriptions()
    if as_json:
        counts = {"nodes": graph.num_nodes, "edges": graph.num_edges}
        print_json({**counts, **dataclasses.asdict(cost), "columns": columns})
    else:
        for name, treatment in columns.items():
            typer.echo(one_line(f"{name}: {treatment}"))
        typer.echo(
            f"{graph!r}: about {cost.memory_mib:,.0f} MiB of memory, {cost.disk_mib:,.0f} MiB of temporary files, "
            f"{cost.seconds:,.0f} s on two cores"
        )
    cost.refuse_what_cannot_fit()


def _tell_fit(detector: Detector, out: Path, graph: Graph, seconds: float, as_json: bool) -> None:
    """Print what was fitted."""
    num_training, num_held_out = detector.num_training_nodes_, len(detector.calibration_)
    if as_json:
        print_json(
            {
                "model": str(out),
                "method": detector.name,
                "nodes": graph.num_nodes,
                "training_nodes": num_training,
                "calibration_nodes": num_held_out,
                "classes": len(detector.classes_),
                "seconds": round(seconds, 3),
            }
        )
    else:
        tell(
            f"{detector.name} fitted on {num_training:,} nodes in {seconds:.1f} s, "
            f"calibrated on {num_held_out:,}: {out}"
        )
