"""The options that commands share."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import tomllib
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from degem.cli.common import prepare_machine
from degem.errors import GraphError, ParameterError

if TYPE_CHECKING:
    from degem import Detector, Graph
    from degem.engine import Ray
    from degem.training import OnProgress

    Place = Callable[[OnProgress], AbstractContextManager[Ray | None]]


def _level(context: typer.Context, option: typer.CallbackParam, value: float | None) -> float | None:
    """Refuse 0 and 1, and two levels, while the words are read: the library would only once everything is scored."""
    if value is not None and not 0 < value < 1:
        raise ParameterError(f"{option.opts[0]} {value:g}: a level must lie strictly between 0 and 1")
    sources = [context.get_parameter_source(name) for name in ("alpha", "fdr")]
    if all(source is not None and source.name == "COMMANDLINE" for source in sources):
        raise ParameterError("--alpha and --fdr are two ways to choose the flagged nodes: keep one")
    return value


GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A folder (nodes.csv|parquet, edges.csv|parquet), an .npz file, a database (duckdb:FILE, sqlite:FILE, "
        "postgresql://…), or a dataset's name.",
    ),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that degem fit wrote.")]
ModelOut = Annotated[
    Path | None, typer.Option("--out", metavar="MODEL", help="Where it goes.", show_default="in place of the old one")
]
Mkdir = Annotated[bool, typer.Option("--mkdir", help="Make the folder that an output goes to where it is missing.")]
Exposure = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column that marks nodes known to be OOD, for methods that need such."),
]
Reference = Annotated[
    str | None,
    typer.Option(metavar="GRAPH", help="The graph the model was fitted on: names the nearest training nodes."),
]
TableOut = Annotated[Path, typer.Option(metavar="TABLE", help="A .parquet or .csv file; - for CSV on standard output.")]
NewSince = Annotated[
    str | None,
    typer.Option(
        metavar="GRAPH|MODEL", help="Judge only nodes that are not in this graph, or were not there at MODEL's fit."
    ),
]
Nodes = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Judge only the nodes with the ids in this file, one a line.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
DataDir = Annotated[Path | None, typer.Option(help="Raw datasets.", show_default="$DEGEM_DATA")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Alpha = Annotated[float, typer.Option(callback=_level, help="False-alarm rate: share of ID nodes that may be flagged.")]
FalseDiscoveryRate = Annotated[
    float | None,
    typer.Option("--fdr", callback=_level, help="Instead of --alpha: share of flagged nodes that may be false alarms."),
]
ByDegree = Annotated[bool, typer.Option("--by-degree", help="Calibrate among nodes of similar degree.")]
Engine = Annotated[Literal["local", "ray"], typer.Option(help="ray: spread over a Ray cluster, see docs/cluster.md.")]
Address = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Of Ray: auto, local, HOST:PORT or ray://HOST:PORT.", show_default="local"),
]
StoreUri = Annotated[
    str | None,
    typer.Option("--store", metavar="URI", help="With --engine ray: a folder all nodes see, or s3://…, gs://…."),
]


def place_of(engine: str, address: str | None, store: str | None) -> Place:
    """Where work is done, as a context that is told a listener to progress."""
    if engine == "local":
        if address is not None or store is not None:
            raise ParameterError("--address and --store belong to --engine ray: add it")
        return lambda on_progress: nullcontext()
    if store is None:
        raise ParameterError("--engine ray needs --store URI: a folder that all nodes see, or s3://…")
    from degem.engine import Ray

    return lambda on_progress: Ray(store, address or "local", on_progress)


@dataclasses.dataclass(frozen=True)
class Inputs:
    """How a command reads models and graphs. Several columns are separated by commas."""

    id_column: Annotated[str | None, typer.Option(help="Column of the nodes' ids.", show_default="first column")] = None
    label_column: Annotated[str | None, typer.Option(help="Column of the classes; empty where unknown.")] = None
    feature_columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Feature columns.", show_default="every other column, or the model's"),
    ] = None
    keep_columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Columns that are no features, such as a year or a ground truth."),
    ] = None
    columns: Annotated[
        Path | None,
        typer.Option(
            metavar="TOML",
            help='How columns are encoded, a line each: zip = "category". fit --dry-run lists it.',
            show_default="as their values suggest, or the model's",
        ),
    ] = None
    unknown_ids: Annotated[
        Literal["error", "drop", "add"] | None,
        typer.Option(help="What to do with edges to ids that are no nodes.", show_default="error, or the model's"),
    ] = None
    ignore_weights: Annotated[
        bool, typer.Option("--ignore-weights", help="Leave the weights of edges out.", show_default="as at the fit")
    ] = False
    nodes_sql: Annotated[
        str | None, typer.Option(metavar="SQL", help="Of a database: the nodes.", show_default="SELECT * FROM nodes")
    ] = None
    edges_sql: Annotated[
        str | None, typer.Option(metavar="SQL", help="Of a database: the edges.", show_default="SELECT * FROM edges")
    ] = None
    logits: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Class logits of your own network: .npy in the nodes' order, or a table."),
    ] = None
    embeddings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Penultimate layer of your own network, in such a file.")
    ] = None
    detector_class: Annotated[
        str | None, typer.Option(metavar="MODULE:CLASS", help="The class of MODEL's method, where no package lists it.")
    ] = None
    device: Annotated[
        str | None, typer.Option(help="cpu or cuda.", show_default="cpu; for a model where it was fitted")
    ] = None
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads to use.", show_default="all cores")] = None

    def detector(self, model: Path) -> Detector:
        """The model in a folder."""
        from degem import Detector

        prepare_machine(self.threads, self.device)
        if self.detector_class is not None:
            Detector.registry.check(self.detector_class)  # importing a class registers it
        return Detector.load(model, device=self.device)

    def graph(
        self,
        name: str,
        *,
        model: Detector | None = None,
        needed: Sequence[str | None] = (),
        cluster: Ray | None = None,
    ) -> Graph:
        """The graph that GRAPH stands for: a folder or file of that name, else a dataset.

        Arguments:
            name: What the user wrote.
            model: The detector whose columns a folder must have, encoded as at its fit.
            needed: Further columns to keep, such as the one of ``--ood``.
            cluster: What reads partitioned Parquet.
        """
        from degem.data.outputs import num_logits, read_outputs, wrap

        if cluster is not None:
            from degem.engine import is_partitioned, read_partitioned

            if is_partitioned(Path(name)):
                chosen = {"id_column": self.id_column, "label_column": self.label_column}
                return read_partitioned(cluster, Path(name), **chosen, feature_columns=listed(self.feature_columns))
        if self.logits is None and self.embeddings is None:
            if model is not None and num_logits(model.feature_names_) is not None:
                raise ParameterError(f"{name}: the model reads a network of yours: --logits or --embeddings FILE")
            return self._graph(name, self._table_options(model), needed)
        graph = self.bare_graph(name, needed)
        logits, names = (None, None) if self.logits is None else read_outputs(self.logits, graph)
        embeddings = None if self.embeddings is None else read_outputs(self.embeddings, graph)[0]
        return wrap(graph, logits=logits, embeddings=embeddings, class_names=names)

    def bare_graph(self, name: str, needed: Sequence[str | None] = ()) -> Graph:
        """The graph without the feature columns of its folder."""
        from degem.errors import GraphNotice

        options = self._table_options(None) | ({"feature_columns": []} if _holds_tables(name) else {})
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the graph has no features", GraphNotice)
            return self._graph(name, options, needed)

    def _graph(self, name: str, options: dict[str, Any], needed: Sequence[str | None]) -> Graph:
        """The graph, from a folder with these options."""
        from degem.data.files import read_graph

        path = Path(name)
        if _holds_tables(name):
            kept = [*options["keep_columns"], *(column for column in needed if column)]
            options["keep_columns"] = list(dict.fromkeys(kept))
        else:
            del options["schema"]
            options["feature_columns"] = listed(self.feature_columns)
            if not path.exists() and path.name == name and not path.suffix:
                from degem.data.datasets import ALIASES, DATASETS, load_dataset

                if name.lower() not in {*DATASETS, *ALIASES}:
                    raise GraphError(
                        f"{name} is neither a folder or file nor a dataset: degem datasets lists the datasets"
                    )
                if any(options.values()):
                    raise ParameterError(f"{name}: columns are chosen in folders of tables only, a dataset has its own")
                return load_dataset(name)
        return read_graph(name, **options)

    def _table_options(self, model: Detector | None) -> dict[str, Any]:
        """What the flags, and a model, say of a graph's tables, as ``read_graph`` takes it."""
        from degem.schema import TableSchema

        features, schema = listed(self.feature_columns), None
        if model is not None:
            schema = model.schema_ or TableSchema()
            features = features or (None if schema.columns else model.feature_names_)
        plain = ("id_column", "label_column", "unknown_ids", "ignore_weights", "nodes_sql", "edges_sql")
        return {name: getattr(self, name) for name in plain} | {
            "feature_columns": features,
            "keep_columns": listed(self.keep_columns) or [],
            "columns": None if self.columns is None else _treatments(self.columns),
            "schema": schema,
        }

    def graph_joined(self, name: str, onto: str, model: Detector) -> tuple[Graph, Graph]:
        """The graph ``onto``, and the one it becomes when the new nodes in a folder arrive."""
        from degem.data.onto import read_onto

        if not Path(name).is_dir():
            raise GraphError(f"--onto {onto}: {name} must be a folder with tables of the new nodes and of their edges")
        if self.logits is not None or self.embeddings is not None:
            raise ParameterError(f"--onto {onto}: your network reads the whole graph: join it yourself")
        before = self.graph(onto, model=model)
        options = self._table_options(model)
        del options["nodes_sql"], options["edges_sql"]
        return before, read_onto(name, before, **options)


def _holds_tables(name: str) -> bool:
    from degem.data.files import is_database

    return is_database(name) or Path(name).is_dir()


def _treatments(path: Path) -> dict[str, str]:
    """The treatments of columns in a TOML file."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError(f"--columns {path} cannot be read: {error}") from None
    for name, treatment in found.items():
        if not isinstance(treatment, str):
            raise ParameterError(f'--columns {path}: {name!r} needs one treatment, such as {name} = "category"')
    return found


def takes_inputs(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of :class:`Inputs` in the place of its parameter ``inputs``."""
    signature, options = (inspect.signature(what, eval_str=True) for what in (command, Inputs))
    given: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        given += options.parameters.values() if name == "inputs" else [parameter]
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in given]

    @functools.wraps(command)
    def called(**words: Any) -> None:
        inputs = Inputs(**{name: words.pop(name) for name in options.parameters})
        command(**words, inputs=inputs)

    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def listed(text: str | None) -> list[str] | None:
    """What commas separate; None where nothing was said."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]
