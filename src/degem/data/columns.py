"""Columns of a CSV or Parquet file, read strictly: wrong bytes, ragged rows and words among numbers are errors."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet

from degem.errors import GraphError, quoted
from degem.files import memory_limit, opened, size_of

MAX_COLUMNS = 100_000
MAX_HEADER = 1 << 24  # bytes; also the longest row
BYTES_PER_BYTE = 6  # that reading CSV takes
BYTES_PER_CELL = 20  # that reading Parquet takes, with what is made of it
SMALLER = "free some, set DEGEM_MAX_READ_MIB, or use a folder of memory maps (docs/graph-files.md)"
HINT = "encode categories as 0/1 columns, or choose the features with feature_columns or keep_columns"


def column_names(path: Path) -> list[str]:
    """The names of the columns, each there once."""
    with _told_by_file(path):
        if path.suffix == ".csv":
            names = _csv_names(path)
        else:
            with opened(path) as file:
                names = list(parquet.read_schema(file).names)
    if len(names) > MAX_COLUMNS:
        raise _too_wide(path)
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not name.strip() or name.startswith("__index_level_"):
            raise GraphError(
                f"{path}: column {position + 1} has no name: name it or leave it out (pandas: write with index=False)"
            )
        if name in seen:
            raise GraphError(f"{path} has two columns called {quoted(name)}: rename one")
        seen.add(name)
    return names


def read_columns(path: Path, *, texts: Sequence[str], numbers: Sequence[str]) -> pa.Table:
    """Some columns of a table: of CSV ``texts`` as text and ``numbers`` as floats, of Parquet as they are stored."""
    with _told_by_file(path):
        if path.suffix == ".csv":
            return _read_csv(path, texts, numbers)
        with opened(path) as file:
            return _read_parquet(path, file, texts, numbers)


def _read_parquet(path: Path, file: BinaryIO, texts: Sequence[str], numbers: Sequence[str]) -> pa.Table:
    """Columns of a Parquet file, whose types and sizes are looked at before anything is unpacked."""
    parquet_file = parquet.ParquetFile(file)
    for name in (*texts, *numbers):
        kind = parquet_file.schema_arrow.field(name).type
        if name in numbers and not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or kind == pa.bool_()):
            raise GraphError(f"{path}: column {quoted(name)} holds {kind}, not numbers: {HINT}")
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise GraphError(f"{path}: column {quoted(name)} holds {kind}: a node has one text or number there")
    rows = parquet_file.metadata.num_rows
    packed = sum(parquet_file.metadata.row_group(group).total_byte_size for group in range(parquet_file.num_row_groups))
    if rows * BYTES_PER_CELL * (len(texts) + len(numbers)) + packed > memory_limit():
        raise GraphError(f"{path} has {rows:,} rows, too many for the memory: {SMALLER}")
    # Repeated text is packed once: what it takes unpacked is known only when its dictionary is.
    table = parquet_file.read(columns=list(numbers)) if not texts else _with_texts(path, file, texts, numbers)
    table.validate(full=True)
    return table


def _with_texts(path: Path, file: BinaryIO, texts: Sequence[str], numbers: Sequence[str]) -> pa.Table:
    table = parquet.ParquetFile(file, read_dictionary=list(texts)).read(columns=[*texts, *numbers])
    for place, name in enumerate(table.column_names):
        column = table[name]
        if pa.types.is_dictionary(column.type):
            column.validate(full=True)
            if sum(_unpacked_size(chunk) for chunk in column.chunks) > memory_limit():
                raise GraphError(f"{path}: column {quoted(name)} is too large for the memory: {SMALLER}")
            table = table.set_column(place, name, pc.cast(column, column.type.value_type))
    return table


def _unpacked_size(chunk: pa.DictionaryArray) -> int:
    """The bytes of a packed column's text."""
    if not (pa.types.is_string(chunk.dictionary.type) or pa.types.is_large_string(chunk.dictionary.type)):
        return len(chunk) * BYTES_PER_CELL
    lengths = pc.cast(pc.binary_length(chunk.dictionary), pa.int64())
    return pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0


def _csv_names(path: Path) -> list[str]:
    """The header's names; no more of the file than that is read, and no more than ``MAX_HEADER`` of that."""
    with opened(path) as file:
        if BYTES_PER_BYTE * size_of(file) > memory_limit():
            raise GraphError(f"{path} has {size_of(file):,} bytes, too many for the memory: {SMALLER}")
        header = file.readline(MAX_HEADER + 1)
    if not header.removeprefix(b"\xef\xbb\xbf").strip():
        raise GraphError(f"{path} is empty or begins with an empty line: its first line names the columns")
    if len(header) > MAX_HEADER or header.count(b",") >= MAX_COLUMNS:
        raise _too_wide(path)
    try:
        return next(csv.reader([header.decode("utf-8-sig").rstrip("\r\n")], strict=True))
    except csv.Error as error:
        raise GraphError(f"{path}: its first line does not name columns ({error})") from None


def _read_csv(path: Path, texts: Sequence[str], numbers: Sequence[str]) -> pa.Table:
    schema = pa.schema([*((name, pa.string()) for name in texts), *((name, pa.float64()) for name in numbers)])
    names = _csv_names(path)
    with opened(path) as file:
        if not file.readline().endswith(b"\n"):
            return schema.empty_table()
    try:
        return arrow_csv.read_csv(
            str(path),
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
            return f"column {quoted(column)}, {row}: {quoted(value[1])} is not a number: {HINT}"
        if "UTF8" in problem:
            return f"column {quoted(column)}, {row} is not UTF-8: save the file as UTF-8"
        return f"column {quoted(column)}, {row}: {problem}"
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
