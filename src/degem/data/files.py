"""Graphs in files: a folder of tables, or one ``.npz`` archive. The layouts are in ``docs/graph-files.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from degem.data.archives import read_npz
from degem.data.memmap import is_memmap, read_memmap
from degem.data.sql import EDGES, KINDS, NODES, is_database, query
from degem.data.tables import TableOptions, folder_tables, read_tables
from degem.errors import GraphError
from degem.graph import Graph
from degem.schema import TableSchema, UnknownIds


def read_graph(
    path: str | Path,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    feature_columns: Sequence[str] | None = None,
    keep_columns: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    schema: TableSchema | None = None,
    unknown_ids: UnknownIds | None = None,
    ignore_weights: bool = False,
    nodes_sql: str | None = None,
    edges_sql: str | None = None,
) -> Graph:
    """Read a graph from a folder with ``nodes`` and ``edges`` tables (CSV or Parquet), a database, or an ``.npz`` file.

    A folder of ``.npy`` files is opened as memory maps: see :func:`~degem.data.memmap.read_memmap`.
    The other arguments are for a folder of tables. Its columns are encoded, each by a treatment of its own (numbers
    scaled, categories as indicators, …): how, is learnt from the table and kept in ``Graph.schema``. Anything wrong
    in a file is a :class:`~degem.errors.GraphError` that names the file, the column and the row (the first row after
    the header is row 1); nothing is repaired in silence.

    Arguments:
        path: The folder, the ``.npz`` file, or the database: ``duckdb:FILE``, ``sqlite:FILE``, ``postgresql://…``.
        id_column: The nodes' ids, text or whole numbers, each once. Default: the first column.
        label_column: The nodes' classes, empty where unknown. Default: ``label``, where there is such a column.
        feature_columns: The features, in this order. Default: every column that has no other role.
        keep_columns: Columns that are no features, but come along in ``Graph.columns``, such as a year.
        columns: Treatments of columns, by name, where the usual ones will not do: ``number``, ``skewed``, ``boolean``,
            ``date``, ``time``, ``category``, ``as is``, ``left out``.
        schema: How to encode a graph that comes later: ``detector.schema_``, or the earlier graph's ``schema``. An
            empty ``TableSchema()`` takes numbers as they are.
        unknown_ids: Edges to ids that are not in the node table are an ``error``, or ``drop`` them, or ``add`` the
            nodes. Default: the schema's, else ``error``.
        ignore_weights: Whether weights of edges are left out.
        nodes_sql: The query that gives the node table of a database. Default: ``SELECT * FROM nodes``.
        edges_sql: The query that gives the edge table. Default: ``SELECT * FROM edges``.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "nodes.csv").write_text("id,label,x,year\\nann,red,0.5,1999\\nbob,,1.5,2001\\n")
        >>> _ = (folder / "edges.csv").write_text("source,target\\nann,bob\\n")
        >>> graph = read_graph(folder, keep_columns=["year"])
        >>> graph
        Graph(2 nodes, 1 edges, 2 features, 1 classes)
        >>> graph.feature_names
        ('x', '(unseen)')
        >>> graph.columns["year"]
        array([1999, 2001])
    """
    database, path = str(path), Path(path)
    options = TableOptions(
        id_column=id_column,
        label_column=label_column,
        feature_columns=feature_columns,
        keep_columns=keep_columns,
        columns=columns,
        schema=schema,
        unknown_ids=unknown_ids,
        ignore_weights=ignore_weights,
    )
    if is_database(database):
        nodes = query(database, nodes_sql or NODES, "--nodes-sql")
        return read_tables(nodes, query(database, edges_sql or EDGES, "--edges-sql"), options)
    if nodes_sql or edges_sql:
        raise GraphError(f"{path} is no database: --nodes-sql and --edges-sql ask {', '.join(KINDS)}…")
    if path.is_dir() and not is_memmap(path):
        return read_tables(*folder_tables(path), options)
    if any((id_column, label_column, feature_columns, keep_columns, columns)):
        raise GraphError(f"{path}: columns are chosen in folders of tables only, this one holds arrays with their own")
    if path.is_dir():
        return _chosen(read_memmap(path), ignore_weights)
    if not path.exists():
        raise GraphError(f"{path} does not exist: give a folder with nodes and edges tables, or an .npz file")
    if path.suffix != ".npz":
        raise GraphError(f"{path} is no graph: give the folder that holds the nodes and edges tables, or an .npz file")
    return _chosen(read_npz(path), ignore_weights)


def _chosen(graph: Graph, ignore_weights: bool) -> Graph:
    return graph.unweighted() if ignore_weights else graph
