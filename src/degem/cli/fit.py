"""``degem fit``: from a graph to a model folder."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from degem.cli import options
from degem.cli.common import answer, check_folder, exposed_nodes, prepare_machine, print_json
from degem.cli.messages import progress_bar
from degem.errors import ParameterError, one_line

if TYPE_CHECKING:
    from degem import Detector, Graph
    from degem.training import OnProgress


@options.takes_inputs
def fit(
    graph: options.GraphArgument,
    out: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Folder to write the model to; only --dry-run does without.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a model.")] = False,
    mkdir: options.Mkdir = False,
    method: Annotated[str, typer.Option(help="The detector's name, see degem methods, or module:Class.")] = "degem",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; may be given many times."),
    ] = None,
    *,
    inputs: options.Inputs,
    exposure: options.Exposure = None,
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
    engine: options.Engine = "local",
    address: options.Address = None,
    store: options.StoreUri = None,
    nodes: Annotated[int, typer.Option(min=1, help="With --engine ray --dry-run: machines.")] = 16,
    cpus: Annotated[int, typer.Option(min=1, help="Their cores, each.")] = 32,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Their memory, each.")] = "128G",
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Learn what the in-distribution nodes of GRAPH look like, and save the model.

    In-distribution are the labelled nodes, or all nodes of a graph without labels. A tenth of them (or the graph's val
    mask) is held out to calibrate p-values.

    Example: degem fit my_graph/ --label-column topic --out model --set num_hops=3
    """
    from degem import Detector
    from degem.training import Progress

    Detector.registry.check(method)
    kind = Detector.registry[method]
    detector = kind(seed=seed, device=inputs.device or "cpu").set_params(**_parsed_settings(kind, settings or []))
    if memory_budget is not None:
        detector.set_params(memory_budget=memory_budget)
    prepare_machine(inputs.threads, detector.device)
    planned = dry_run and engine == "ray"
    place = options.place_of("local", None, None) if planned else options.place_of(engine, address, store)
    model = None if dry_run else _checked_target(out, force, mkdir)
    with progress_bar() as on_progress, place(on_progress) as cluster:
        on_progress(Progress("read", 0, 1))
        loaded = inputs.graph(graph, needed=[exposure], cluster=cluster)
        if model is not None:
            seconds = timed_fit(
                detector, loaded, on_progress, here=cluster is None, exposure=exposed_nodes(loaded, exposure)
            )
    if planned:
        from degem.cli.plan import tell_plan

        tell_plan(detector, loaded, (nodes, cpus, memory), as_json)
    elif model is None:
        _tell_cost(detector, loaded, as_json)
    else:
        detector.save(model)
        _tell_fit(detector, model, loaded, seconds, as_json)


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


def timed_fit(detector: Detector, graph: Graph, on_progress: OnProgress, *, here: bool = True, **how: Any) -> float:
    """Fit, if it is ``here`` where memory and disk suffice, ``how`` as in ``Detector.fit``; the seconds it took."""
    from degem.detectors.cost import Estimable

    if here and isinstance(detector, Estimable):
        detector.estimate(graph).refuse_what_cannot_fit()
    start = time.perf_counter()
    detector.fit(graph, on_progress=on_progress, **how)
    return time.perf_counter() - start


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
    document = {
        "model": str(out),
        "method": detector.name,
        "nodes": graph.num_nodes,
        "training_nodes": num_training,
        "calibration_nodes": num_held_out,
        "classes": len(detector.classes_),
        "seconds": round(seconds, 3),
    }
    answer(
        document,
        as_json,
        f"{detector.name} fitted on {num_training:,} nodes in {seconds:.1f} s, calibrated on {num_held_out:,}: {out}",
    )
