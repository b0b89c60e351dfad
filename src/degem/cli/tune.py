"""``degem tune``: search for parameters."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from degem.cli.common import (
    Columns,
    Exposure,
    FeatureColumns,
    GraphArgument,
    IdColumn,
    KeepColumns,
    LabelColumn,
    Mkdir,
    Seed,
    check_folder,
    exposed_nodes,
    method_named,
    open_graph,
)
from degem.errors import ParameterError

if TYPE_CHECKING:
    from degem import NodeSet


class Protocol(StrEnum):
    """What a search may look at."""

    strict = "strict"
    oracle = "oracle"


def tune(
    graph: GraphArgument,
    out: Annotated[Path, typer.Option(help="Folder of the study; a study there goes on.")],
    method: Annotated[str, typer.Option(help="The detector to tune.")] = "degem",
    trials: Annotated[int, typer.Option(min=1, help="Trials in all, earlier ones included.")] = 50,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    feature_columns: FeatureColumns = None,
    keep_columns: KeepColumns = None,
    exposure: Exposure = None,
    seed: Seed = 0,
    protocol: Annotated[Protocol, typer.Option(help="strict: ID data only. oracle: test data.")] = Protocol.strict,
    data_dir: Annotated[Path | None, typer.Option(help="Raw datasets.", show_default="$DEGEM_DATA")] = None,
    mkdir: Mkdir = False,
) -> None:
    """Search the paper's space of parameters; by default judged on in-distribution nodes alone.

    Strict maximises validation accuracy minus how well scores tell training from validation nodes. Oracle, for
    benchmark datasets only, maximises test AUROC + test accuracy, as the paper did, and is labelled so.

    Example: degem tune cora --trials 20 --out study
    """
    from degem.bench import tuning
    from degem.data.datasets import ALIASES, DATASETS
    from degem.data.fingerprint import fingerprint
    from degem.shifts.base import Settings
    from degem.shifts.scenarios import kind_of, load_scenario, scenario_name, shifts_of

    check_folder(out, mkdir)
    kind = method_named(method)
    if not Path(graph).exists() and graph.lower() in {*DATASETS, *ALIASES}:  # a file goes first, as in every command
        graph = scenario_name(graph)
        shift = shifts_of(graph)[0]
        scenario = load_scenario(graph, kind_of(shift), Settings(seed=seed), data_dir)
        inside = scenario.train_graph
        exposed: NodeSet | None = scenario.exposure[shift]
        strict = protocol is Protocol.strict
        objective = tuning.strict_objective(inside, seed, exposed) if strict else tuning.oracle_objective(scenario)
    elif protocol is Protocol.oracle:
        raise ParameterError(f"--protocol oracle needs a benchmark dataset with OOD nodes, and {graph} is none")
    else:
        columns = Columns(id_column, label_column, feature_columns, keep_columns)
        inside = open_graph(graph, columns, needed=[exposure])
        if kind.needs_exposure and exposure is None:
            raise ParameterError(
                f"{method} needs nodes known to be OOD: name the column that marks them, --exposure COLUMN"
            )
        exposed = exposed_nodes(inside, exposure)
        objective = tuning.strict_objective(inside, seed, exposed)
    known = [exposed.nodes] if exposed is not None else []
    best = tuning.tune(
        method,
        objective,
        out,
        num_trials=trials,
        seed=seed,
        protocol=protocol.value,
        name=Path(graph).name,
        key=fingerprint("", inside, *inside.masks.values(), *known)[:8],
    )
    label = "" if protocol is Protocol.strict else " (ORACLE: chosen on test nodes, not what a user can have)"
    typer.echo(f"best of {best.num_trials} trials: {best.value:.2f}{label}")
    typer.echo(" ".join(f"--set {name.replace('__', '.')}={value}" for name, value in best.parameters.items()))
