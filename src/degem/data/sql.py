"""A graph in a database: one query gives the table of nodes, another that of edges. Nothing is written to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from degem.data.columns import Source, checked_source
from degem.errors import GraphError, one_line
from degem.extras import needs_extra

NODES, EDGES = "SELECT * FROM nodes", "SELECT * FROM edges"
SERVERS = ("postgresql://", "postgres://")
KINDS = ("duckdb:", "sqlite:", *SERVERS)


def is_database(name: str) -> bool:
    """Whether a graph's name is that of a database.

    Example:
        >>> is_database("sqlite:shop.db"), is_database("shop/")
        (True, False)
    """
    return name.startswith(KINDS)


def query(database: str, sql: str, what: str) -> Source:
    """The table that a query gives.

    Arguments:
        database: ``duckdb:FILE``, ``sqlite:FILE`` or ``postgresql://…``.
        sql: The query.
        what: What messages call it; they do not show the address, which may hold a password.
    """
    kind, _, rest = database.partition(":")
    name = f"{kind} ({what})"
    if kind in ("duckdb", "sqlite") and not Path(rest).is_file():
        raise GraphError(f"{database}: there is no file {rest}")
    read = {"duckdb": _of_duckdb, "sqlite": _of_sqlite}.get(kind, _of_postgresql)
    table = _plain(read(name, rest if kind in ("duckdb", "sqlite") else database, sql))
    return checked_source(Source(name, tuple(table.column_names), table.select))


def _of_duckdb(name: str, path: str, sql: str) -> pa.Table:
    with needs_extra("sql", "a graph in DuckDB"):
        import duckdb
    try:
        with closing(duckdb.connect(path, read_only=True)) as connection:
            return pa.table(connection.sql(sql).to_arrow_table())
    except (duckdb.Error, AttributeError) as error:  # a statement without a result may give None
        raise _failed(name, error) from None


def _of_sqlite(name: str, path: str, sql: str) -> pa.Table:
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as connection:
            return _table(name, connection.execute(sql))
    except sqlite3.Error as error:
        raise _failed(name, error) from None


def _of_postgresql(name: str, address: str, sql: str) -> pa.Table:
    with needs_extra("sql", "a graph in PostgreSQL"):
        import psycopg
    try:
        with psycopg.connect(address, connect_timeout=30) as connection:
            connection.read_only = True
            return _table(name, connection.execute(sql.encode()))
    except psycopg.Error as error:
        raise _failed(name, error) from None


def _failed(name: str, error: Exception) -> GraphError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return GraphError(f"{name}: {one_line(lines[0])}: see --nodes-sql and --edges-sql")


def _table(name: str, cursor: Any) -> pa.Table:
    """The rows of a cursor; a column whose values are of several types, or of one that Arrow lacks, as text."""
    if cursor.description is None:
        raise GraphError(f"{name}: the query gives no table: it must be a SELECT")
    names, rows = [column[0] for column in cursor.description], cursor.fetchall()
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.Table.from_arrays([_array(values) for values in columns], names=names)


def _array(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def _plain(table: pa.Table) -> pa.Table:
    """Packed text unpacked, and identifiers of a type of their own (UUID) as text."""
    for place, name in enumerate(table.column_names):
        kind = table.schema.field(place).type
        if isinstance(kind, pa.BaseExtensionType):
            texts = [None if value is None else str(value) for value in table.column(place).to_pylist()]
            table = table.set_column(place, name, pa.array(texts, pa.string()))
        elif pa.types.is_dictionary(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
            table = table.set_column(place, name, pc.cast(table.column(place), pa.string()))
    return table
