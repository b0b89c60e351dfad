"""Columns of a CSV or Parquet file, read strictly: wrong bytes, ragged rows and words among numbers are errors."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from degem.errors import GraphError

MAX_COLUMNS = 100_000
MAX_HEADER = 1 << 24  # bytes; also the longest row
HINT = "encode categories as 0/1 columns, or choose the features with feature_columns or keep_columns"


def column_names(path: Path) -> list[str]:
    """The names of the columns, each there once."""
    with _told_by_file(path):
        names = _csv_names(path) if path.suffix == ".csv" else list(parquet.read_schema(path).names)
    if len(names) > MAX_COLUMNS:
        raise _too_wide(path)
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not name.strip() or name.startswith("__index_level_"):
            raise GraphError(
                f"{path}: column {position + 1} has no name: name it or leave it out (pandas: write with index=False)"
            )
        if name in seen:
            raise GraphError(f"{path} has two columns called {name!r}: rename one")
        seen.add(name)
    return names


def read_columns(path: Path, *, texts: Sequence[str], numbers: Sequence[str]) -> pa.Table:
    """Some columns of a table: of CSV ``texts`` as text and ``numbers`` as floats, of Parquet as they are stored."""
    with _told_by_file(path):
        if path.suffix == ".csv":
            return _read_csv(path, texts, numbers)
        table = parquet.read_table(path, columns=[*texts, *numbers])
    for name in numbers:
        kind = table[name].type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise GraphError(f"{path}: column {name!r} holds {kind}, not numbers: {HINT}")
    return table


def _csv_names(path: Path) -> list[str]:
    """The header's names; no more of the file than that is read, and no more than ``MAX_HEADER`` of that."""
    with path.open("rb") as file:
        header = file.readline(MAX_HEADER + 1)
    if not header.strip():
        raise GraphError(f"{path} is empty or begins with an empty line: its first line names the columns")
    if len(header) > MAX_HEADER or header.count(b",") >= MAX_COLUMNS:
        raise _too_wide(path)
    try:
        return next(csv.reader([header.decode("utf-8-sig").rstrip("\r\n")]))
    except csv.Error as error:
        raise GraphError(f"{path}: its first line does not name columns ({error})") from None


def _read_csv(path: Path, texts: Sequence[str], numbers: Sequence[str]) -> pa.Table:
    schema = pa.schema([*((name, pa.string()) for name in texts), *((name, pa.float64()) for name in numbers)])
    names = _csv_names(path)
    with path.open("rb") as file:
        if not file.readline().endswith(b"\n"):
            return schema.empty_table()
    try:
        return arrow_csv.read_csv(
            path,
            # One thread: only so does an error know its row.
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=MAX_HEADER),
            convert_options=arrow_csv.ConvertOptions(column_types=schema, include_columns=schema.names),
        )
    except pa.ArrowInvalid as error:
        raise GraphError(f"{path}: {_readable(str(error), names)}") from None


def _readable(message: str, names: Sequence[str]) -> str:
    """Arrow's complaint about a CSV file, with the column's name and the row counted from 1 below the header."""
    message = message.splitlines()[0]
    where = re.search(r"Row #(\d+)", message)
    row = f"row {int(where[1]) - 1}" if where else "some row"
    if found := re.search(r"CSV column #(\d+).*error to \w+: (.*)", message):
        column, problem = names[int(found[1])], found[2]
        if value := re.search(r"invalid value '(.*)'", problem):
            return f"column {column!r}, {row}: {value[1]!r} is not a number: {HINT}"
        if "UTF8" in problem:
            return f"column {column!r}, {row} is not UTF-8: save the file as UTF-8"
        return f"column {column!r}, {row}: {problem}"
    if found := re.search(r"Expected (\d+) columns, got (\d+)", message):
        return (
            f"{row} has {found[2]} values for {found[1]} columns: separate them by commas and quote text that has any"
        )
    return message


def _too_wide(path: Path) -> GraphError:
    return GraphError(
        f"{path} names more than {MAX_COLUMNS:,} columns (or its first line is longer than {MAX_HEADER >> 20} MB): "
        "write wide features as a sparse .npz (docs/graph-files.md)"
    )


@contextmanager
def _told_by_file(path: Path) -> Iterator[None]:
    """What goes wrong below Python while a file is read, as an error that names the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise GraphError(f"{path}: byte {error.start} is not UTF-8: save the file as UTF-8") from None
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise GraphError(f"{path} cannot be read: {reason}") from None
