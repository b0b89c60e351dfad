"""What the commands share: options, opening graphs, writing tables, printing."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from degem.errors import GraphError, ParameterError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from degem import Detector, Graph, NodeSet


class Exchangeable(StrEnum):
    """What may be exchanged between calibration nodes and new ones."""

    nodes = "nodes"
    edges = "edges"


GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A folder (nodes.csv|parquet, edges.csv|parquet), an .npz file, or a dataset's name.",
    ),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that degem fit wrote.")]
IdColumn = Annotated[str | None, typer.Option(help="Column of the nodes' ids.", show_default="first column")]
LabelColumn = Annotated[str | None, typer.Option(help="Column of the classes; empty where unknown.")]
FeatureColumns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…",
        help="Feature columns.",
        show_default="every other column, or the model's",
    ),
]
KeepColumns = Annotated[
    str | None, typer.Option(metavar="A,B,…", help="Columns that are no features, such as a year or a ground truth.")
]
Exposure = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column that marks nodes known to be OOD, for methods that need such."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda.", show_default="cpu; for a model where it was fitted")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads to use.", show_default="all cores")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; may be given many times."),
]


ModelOut = Annotated[
    Path | None, typer.Option("--out", metavar="MODEL", help="Where it goes.", show_default="in place of the old one")
]
Mkdir = Annotated[bool, typer.Option("--mkdir", help="Make the folder that an output goes to where it is missing.")]

FORMULA = re.compile(r"[=+\-@\t\r](?![\d.]+$)")


def _level(context: typer.Context, option: typer.CallbackParam, value: float | None) -> float | None:
    """Refuse 0 and 1, and two levels, while the words are read: the library would only once everything is scored."""
    if value is not None and not 0 < value < 1:
        raise ParameterError(f"{option.opts[0]} {value:g}: a level must lie strictly between 0 and 1")
    sources = [context.get_parameter_source(name) for name in ("alpha", "fdr")]
    if all(source is not None and source.name == "COMMANDLINE" for source in sources):
        raise ParameterError("--alpha and --fdr are two ways to choose the flagged nodes: keep one")
    return value


Alpha = Annotated[
    float,
    typer.Option(callback=_level, help="False-alarm rate: share of ID nodes that may be flagged."),
]
FalseDiscoveryRate = Annotated[
    float | None,
    typer.Option(
        "--fdr",
        callback=_level,
        help="Instead of --alpha: share of flagged nodes that may be false alarms.",
    ),
]
NewSince = Annotated[
    str | None,
    typer.Option(
        metavar="GRAPH|MODEL", help="Judge only nodes that are not in this graph, or were not there at MODEL's fit."
    ),
]
Onto = Annotated[
    str | None,
    typer.Option(metavar="GRAPH", help="Join the new nodes in GRAPH, a folder, to this graph, and judge only them."),
]
NodesFile = Annotated[
    Path | None,
    typer.Option("--nodes", metavar="FILE", help="Judge only the nodes with the ids in this file, one a line."),
]
Exchange = Annotated[
    Exchangeable, typer.Option("--exchangeable", help="edges: the well-connected arrive first, so weigh by 1 / degree.")
]
ByDegree = Annotated[bool, typer.Option("--by-degree", help="Calibrate among nodes of similar degree.")]


def ids_in(path: Path) -> list[str]:
    """The ids in a file, one a line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise GraphError(f"--nodes {path} cannot be read: {error}") from None
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise GraphError(f"--nodes {path} holds no id: write one a line")
    return found


def judged_ids(
    graph: Graph, detector: Detector, model: Path, columns: Columns, new_since: str | None, nodes: Path | None
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
        before = open_graph(new_since, columns, features=detector.feature_names_)
        new = ~np.isin(graph.node_ids.astype(str), before.node_ids.astype(str))
    return [str(name) for name in graph.node_ids[new].tolist()]


def parsed_settings(kind: type[Detector], settings: list[str] | None) -> dict[str, Any]:
    """The parameters that ``--set name=value`` stand for, checked against their type and range."""
    from degem import parameters

    found = {}
    for setting in settings or []:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ParameterError(f"--set {setting}: write it as name=value")
        found[name.replace(".", "__")] = parameters.parse(kind, name, text)
    return found


def method_named(name: str) -> type[Detector]:
    """The detector of that name."""
    from degem import Detector

    if name not in Detector.registry:
        raise ParameterError(f"there is no method {name!r}: choose from {', '.join(sorted(Detector.registry))}")
    return Detector.registry[name]


def prepare_machine(threads: int | None, device: str | None) -> None:
    """Use that many CPU threads, and make sure that the device is there."""
    import torch

    from degem import parameters

    if device is not None:
        parameters.present_device(device)
    if threads is not None:
        torch.set_num_threads(threads)  # kernels follow it: degem.threads


@dataclass(frozen=True)
class Columns:
    """Which columns of a node table are what, as the flags say; several are separated by commas."""

    ids: str | None = None
    label: str | None = None
    features: str | None = None
    keep: str | None = None


def open_graph(
    name: str, columns: Columns, *, features: Sequence[str] | None = None, needed: Sequence[str | None] = ()
) -> Graph:
    """The graph that GRAPH stands for: a folder or file of that name, else a dataset.

    Arguments:
        name: What the user wrote.
        columns: What the flags say of a folder's node table.
        features: The features of a folder where the flags are silent: a model's.
        needed: Further columns to keep, such as the one of ``--ood``.
    """
    from degem.data.files import read_graph

    path = Path(name)
    chosen, kept = _listed(columns.features), _listed(columns.keep)
    if path.is_dir():
        chosen = chosen or list(features or [])
        kept = list(dict.fromkeys([*kept, *(column for column in needed if column)]))
    elif not path.exists() and path.name == name and not path.suffix:
        from degem.data.datasets import ALIASES, DATASETS, load_dataset

        if name.lower() not in {*DATASETS, *ALIASES}:
            raise GraphError(f"{name} is neither a folder or file nor a dataset: degem datasets lists the datasets")
        if columns != Columns():
            raise ParameterError(f"{name}: columns are chosen in folders of tables only, a dataset has its own")
        return load_dataset(name)
    return read_graph(
        path, id_column=columns.ids, label_column=columns.label, feature_columns=chosen or None, keep_columns=kept
    )


def open_onto(name: str, onto: str, columns: Columns, *, features: Sequence[str] | None = None) -> tuple[Graph, Graph]:
    """The graph ``onto``, and the one it becomes when the new nodes in a folder arrive."""
    from degem.data.onto import read_onto

    if not Path(name).is_dir():
        raise GraphError(f"--onto {onto}: {name} must be a folder with tables of the new nodes and of their edges")
    before = open_graph(onto, columns, features=features)
    return before, read_onto(
        name,
        before,
        id_column=columns.ids,
        label_column=columns.label,
        feature_columns=_listed(columns.features) or before.feature_names,
        keep_columns=_listed(columns.keep),
    )


def _listed(names: str | None) -> list[str]:
    return [] if names is None else [name.strip() for name in names.split(",")]


def truth_column(graph: Graph, name: str) -> NDArray[np.bool_]:
    """A column or mask of the node table as booleans."""
    import numpy as np

    if name in graph.masks:
        return graph.masks[name]
    if name not in graph.columns:
        known = ", ".join([*graph.columns, *graph.masks]) or "none"
        raise GraphError(f"the graph has no column {name!r}; columns that are neither id, label nor feature: {known}")
    column = graph.columns[name]
    words = np.char.lower(column.astype(str))
    truth = np.isin(words, ["true", "1", "1.0"])
    unknown = ~truth & ~np.isin(words, ["false", "0", "0.0"])
    if unknown.any():
        row = int(unknown.argmax())
        raise GraphError(f"column {name!r}, row {row + 1}: {str(column[row])!r} is neither true nor false")
    return truth


def exposed_nodes(graph: Graph, column: str | None) -> NodeSet | None:
    """The nodes that a column marks as known to be OOD; None without a column."""
    import numpy as np

    from degem import NodeSet

    return None if column is None else NodeSet(graph, np.flatnonzero(truth_column(graph, column)))


def check_folder(path: Path | None, mkdir: bool) -> None:
    """Refuse an output whose folder is missing: more often than not it is mistyped."""
    if path is not None and not mkdir and not path.absolute().parent.is_dir():
        raise ParameterError(f"{path}: there is no folder {path.parent}: correct it, or have it made with --mkdir")


STDOUT = Path("-")


def check_table_path(path: Path) -> None:
    """Refuse a table's path whose suffix says no known format, before any work is done; ``-`` is standard output."""
    if path == STDOUT:
        return
    if path.suffix not in {".parquet", ".csv"}:
        raise ParameterError(f"{path}: a table is written to a .parquet or a .csv file")
    if path.is_dir():
        raise ParameterError(f"{path} is a folder: name a file")


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table to Parquet or CSV by its suffix; an interruption leaves the old file, or none.

    In CSV, text that a spreadsheet would take for a formula gets an apostrophe in front. ``-`` is CSV to standard
    output.
    """
    from degem.files import replaced

    check_table_path(path)
    target: Any = nullcontext(sys.stdout) if path == STDOUT else replaced(path, follow_link=True)
    with target as file:
        try:
            if path == STDOUT or path.suffix == ".csv":
                table.transform(_without_formulas).to_csv(file, index=False)
                file.flush()  # while a closed pipe is still an error that is caught
            else:
                table.to_parquet(file, index=False)
        except (ValueError, TypeError) as error:  # lone surrogates; in Parquet numbers and text in one column
            raise GraphError(
                f"{path}: the table cannot be written ({error}): rename what its text columns hold"
            ) from None


def _without_formulas(column: pd.Series) -> pd.Series:
    def safe(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value

    return column if column.dtype.kind in "biufM" else column.map(safe)


def print_json(document: Any) -> None:
    """Print JSON to stdout; NaN and infinities, which JSON does not know, as null."""
    typer.echo(json.dumps(_plain(document), indent=1, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
