"""Columns of a CSV or Parquet file, read strictly: wrong bytes and ragged rows are errors."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
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
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
DECIMAL_COMMA = r"^\s*(-?\d+),(\d+)\s*$"  # where semicolons separate, it is usual
MOST = 8


class SeveralFaultsError(GraphError):
    """Faults that were told together; gathered again, those of no table of their own are told one by one."""

    def __init__(self, message: str, faults: list[str]) -> None:
        super().__init__(message)
        self.faults = faults


class Faults:
    """Faults that are gathered while a table is looked at.

    Example:
        >>> faults = Faults()
        >>> for column in ("x", "y"):
        ...     with faults.gathered():
        ...         raise GraphError(f"column {column} is empty")
        >>> faults.tell()
        Traceback (most recent call last):
        degem.data.columns.SeveralFaultsError: 2 faults: column x is empty; column y is empty
    """

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Inside, a GraphError ends the block and is kept."""
        try:
            yield
        except GraphError as error:
            self.found += error.faults if isinstance(error, SeveralFaultsError) else [str(error)]

    def add(self, fault: str) -> None:
        """Keep one."""
        self.found.append(fault)

    def tell(self, name: str = "") -> None:
        """Raise what was found, if anything was, of the table of that name."""
        if not self.found:
            return
        more = [f"and {len(self.found) - MOST} more"] * (len(self.found) > MOST)
        listed = "; ".join([*(text[: 900 // min(len(self.found), MOST)] for text in self.found[:MOST]), *more])
        message = f"{name}: " * bool(name) + f"{len(self.found)} faults: " * (len(self.found) > 1) + listed
        raise SeveralFaultsError(message, [message] if name else self.found)


@dataclass(frozen=True)
class Source:
    """A table that has not been read yet.

    Arguments:
        name: What messages call it.
        columns: The names of its columns.
        read: Reads some of them: of CSV as text, of anything else as they are stored.
    """

    name: str
    columns: tuple[str, ...]
    read: Callable[[Sequence[str]], pa.Table]


def open_table(path: Path) -> Source:
    """The table in a CSV (``.csv``, ``.tsv``) or Parquet file."""
    with _told_by_file(path):
        if path.suffix != ".parquet":
            names, delimiter = _csv_header(path)
            return checked_source(Source(str(path), tuple(names), partial(_read_csv, path, names, delimiter)))
        with opened(path) as file:
            names = list(parquet.read_schema(file).names)
        return checked_source(Source(str(path), tuple(names), partial(_read_parquet, path)))


def checked_source(source: Source) -> Source:
    """A source whose columns each have a name of their own, and are not too many."""
    if len(source.columns) > MAX_COLUMNS:
        raise _too_wide(source.name)
    faults, seen = Faults(), set[str]()
    for position, name in enumerate(source.columns):
        with faults.gathered():
            if not name.strip() or name.startswith("__index_level_"):
                raise GraphError(
                    f"column {position + 1} has no name: name it or leave it out (pandas: write with index=False)"
                )
            if name in seen:
                raise GraphError(f"two columns are called {quoted(name)}: rename one")
        seen.add(name)
    faults.tell(source.name)
    return source


def _read_parquet(path: Path, names: Sequence[str]) -> pa.Table:
    """Columns of a Parquet file, whose types and sizes are looked at before anything is unpacked."""
    with _told_by_file(path), opened(path) as file:
        parquet_file = parquet.ParquetFile(file)
        schema, faults = parquet_file.schema_arrow, Faults()
        for name in names:
            kind = schema.field(name).type
            if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
                faults.add(
                    f"column {quoted(name)} holds {kind}: a node has one text or number there (--feature-columns)"
                )
        faults.tell(str(path))
        rows, groups = parquet_file.metadata.num_rows, range(parquet_file.num_row_groups)
        packed = sum(parquet_file.metadata.row_group(group).total_byte_size for group in groups)
        if rows * BYTES_PER_CELL * len(names) + packed > memory_limit():
            raise GraphError(f"{path} has {rows:,} rows, too many for the memory: {SMALLER}")
        texts = [name for name in names if not _is_number(schema.field(name).type)]
        # Repeated text is packed once: what it takes unpacked is known only when its dictionary is.
        table = parquet_file.read(columns=list(names)) if not texts else _with_texts(path, file, texts, names)
        table.validate(full=True)
        return table


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or kind == pa.bool_())


def _with_texts(path: Path, file: BinaryIO, texts: Sequence[str], names: Sequence[str]) -> pa.Table:
    table = parquet.ParquetFile(file, read_dictionary=list(texts)).read(columns=list(names))
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


def _csv_header(path: Path) -> tuple[list[str], str]:
    """The header's names and what separates them; no more of the file than ``MAX_HEADER`` is read for it."""
    with opened(path) as file:
        if BYTES_PER_BYTE * size_of(file) > memory_limit():
            raise GraphError(f"{path} has {size_of(file):,} bytes, too many for the memory: {SMALLER}")
        header = file.readline(MAX_HEADER + 1)
    if not header.removeprefix(b"\xef\xbb\xbf").strip():
        raise GraphError(f"{path} is empty or begins with an empty line: its first line names the columns")
    if len(header) > MAX_HEADER or max(header.count(mark.encode()) for mark in DELIMITERS) >= MAX_COLUMNS:
        raise _too_wide(path)
    line = header.decode("utf-8-sig").rstrip("\r\n")
    found: list[tuple[list[str], str]] = []
    for delimiter in DELIMITERS:
        try:
            found.append((next(csv.reader([line], delimiter=delimiter, strict=True)), delimiter))
        except csv.Error as error:
            reason = error
    if not found:
        raise GraphError(f"{path}: its first line does not name columns ({reason})")
    return max(found, key=lambda pair: len(pair[0]))  # the first of equals: commas


def _read_csv(path: Path, header: Sequence[str], delimiter: str, names: Sequence[str]) -> pa.Table:
    """Columns of a CSV file as text."""
    schema = pa.schema([(name, pa.string()) for name in names])
    with _told_by_file(path), opened(path) as file:
        if not file.readline().endswith(b"\n"):
            return schema.empty_table()
    with _told_by_file(path):
        try:
            table = arrow_csv.read_csv(
                str(path),
                # One thread: only so does an error know its row.
                read_options=arrow_csv.ReadOptions(use_threads=False, block_size=MAX_HEADER),
                parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
                convert_options=arrow_csv.ConvertOptions(column_types=schema, include_columns=schema.names),
            )
        except pa.ArrowInvalid as error:
            raise GraphError(f"{path}: {_readable(str(error), header, delimiter)}") from None
    if delimiter == ";":
        for place, name in enumerate(table.column_names):
            point = pc.replace_substring_regex(table[name], DECIMAL_COMMA, r"\1.\2")
            table = table.set_column(place, name, point)
    return table


def _readable(message: str, names: Sequence[str], delimiter: str) -> str:
    """Arrow's complaint about a CSV file, with the column's name and the row counted from 1 below the header."""
    message = message.splitlines()[0]
    where = re.search(r"Row #(\d+)", message)
    row = f"row {int(where[1]) - 1}" if where else "some row"
    if found := re.search(r"CSV column #(\d+).*error to \w+: (.*)", message):
        column, problem = names[int(found[1])], found[2]
        if "UTF8" in problem:
            return f"column {quoted(column)}, {row} is not UTF-8: save the file as UTF-8"
        return f"column {quoted(column)}, {row}: {problem}"
    if found := re.search(r"Expected (\d+) columns, got (\d+)", message):
        return (
            f"{row} has {found[2]} values for {found[1]} columns: separate them by {DELIMITERS[delimiter]} and quote "
            "text that has any"
        )
    return message


def _too_wide(path: object) -> GraphError:
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
