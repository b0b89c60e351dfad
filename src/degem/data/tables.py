"""A graph in a folder of two tables, ``nodes`` and ``edges``, each CSV or Parquet. See ``docs/graph-files.md``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from degem.data.columns import column_names, read_columns
from degem.errors import GraphError, quoted
from degem.graph import Graph
from degem.graph_inputs import encode_labels, label_array, notice

MASKS = ("train", "val", "test")
NUMBER = r"^(-?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|[Nn]a[Nn])$"
TRUTH = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Roles:
    """Which column of the node table is what."""

    ids: str
    label: str | None
    masks: tuple[str, ...]
    kept: tuple[str, ...]
    features: tuple[str, ...]


def read_folder(
    folder: Path,
    *,
    id_column: str | None,
    label_column: str | None,
    feature_columns: Sequence[str] | None,
    keep_columns: Sequence[str],
) -> Graph:
    """The graph in a folder of tables; arguments as in :func:`degem.read_graph`."""
    nodes, edges = table_path(folder, "nodes"), table_path(folder, "edges")
    ids, arrays = read_nodes(nodes, id_column, label_column, feature_columns, keep_columns)
    return Graph.from_arrays(edges=read_edges(edges, nodes, ids), **arrays)


def read_nodes(
    nodes: Path,
    id_column: str | None,
    label_column: str | None,
    feature_columns: Sequence[str] | None,
    keep_columns: Sequence[str],
) -> tuple[pa.ChunkedArray, dict[str, Any]]:
    """The ids of a node table, and all that ``Graph.from_arrays`` takes but the edges."""
    roles = _roles(nodes, id_column, label_column, feature_columns, keep_columns)
    texts = [roles.ids, *([roles.label] if roles.label else []), *roles.masks, *roles.kept]
    table = read_columns(nodes, texts=texts, numbers=list(roles.features))
    if table.num_rows == 0:
        raise GraphError(f"{nodes} has no rows below its header: a graph needs at least one node")
    ids = _ids(nodes, roles.ids, table[roles.ids])
    _check_distinct(nodes, roles.ids, ids)
    labels, classes = _labels(nodes, roles.label, table)
    return ids, {
        "features": _features(nodes, roles.features, table) if roles.features else None,
        "labels": labels,
        "num_nodes": table.num_rows,
        "node_ids": ids.to_numpy(zero_copy_only=False),
        "feature_names": roles.features or None,
        "class_names": classes,
        "masks": {name.removesuffix("_mask"): _mask(nodes, name, table[name]) for name in roles.masks},
        "columns": {name: _natural(table[name]) for name in roles.kept},
    }


def table_path(folder: Path, name: str) -> Path:
    """The table of that name in a folder."""
    found = [path for path in (folder / f"{name}.csv", folder / f"{name}.parquet") if path.is_file()]
    if not found:
        raise GraphError(f"{folder} holds no {name}.csv or {name}.parquet: a graph's folder has nodes and edges")
    if len(found) > 1:
        raise GraphError(f"{folder} holds both {name}.csv and {name}.parquet: keep one")
    return found[0]


def _roles(
    path: Path,
    id_column: str | None,
    label_column: str | None,
    feature_columns: Sequence[str] | None,
    keep_columns: Sequence[str],
) -> Roles:
    names = column_names(path)
    asked = [name for name in (id_column, label_column, *(feature_columns or ()), *keep_columns) if name is not None]
    for position, name in enumerate(asked):
        if name not in names:
            listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
            raise GraphError(f"{path} has no column {quoted(name)}; it has {listed}")
        if name in asked[:position]:
            raise GraphError(f"{path}: column {quoted(name)} is asked for twice: give it one role")
    ids = id_column or names[0]
    if id_column is None and ids in asked:
        raise GraphError(f"{path}: its first column, {quoted(ids)}, has another role: name the ids' with id_column")
    taken = {ids, *asked}
    label = label_column or ("label" if "label" in names and "label" not in taken else None)
    masks = tuple(f"{name}_mask" for name in MASKS if f"{name}_mask" in names and f"{name}_mask" not in taken)
    if feature_columns is None:
        taken |= {*masks, label or ids}
        feature_columns = [name for name in names if name not in taken]
    return Roles(ids, label, masks, tuple(keep_columns), tuple(feature_columns))


def _ids(path: Path, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids as whole numbers where every one is written as such, else as text."""
    if pa.types.is_integer(column.type):
        ids = column
    elif _is_text(column.type):
        ids = _whole_numbers(column)
    else:
        raise GraphError(f"{path}: column {quoted(name)} holds {column.type}; ids are text or whole numbers")
    missing = pc.is_null(ids) if pa.types.is_integer(ids.type) else pc.or_kleene(pc.is_null(ids), pc.equal(ids, ""))
    if (row := _first(missing)) is not None:
        raise GraphError(f"{path}: column {quoted(name)}, row {row}: the id is missing")
    return ids


def _whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as whole numbers if that loses nothing (007 stays text)."""
    try:
        numbers = pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if pc.cast(numbers, column.type).equals(column) else column  # 0x10 and 007 are text


def _check_distinct(path: Path, name: str, ids: pa.ChunkedArray) -> None:
    first = pc.index_in(ids, value_set=ids.combine_chunks()).to_numpy()
    repeated = first != np.arange(len(ids))
    if repeated.any():
        row = int(repeated.argmax())
        raise GraphError(
            f"{path}: column {quoted(name)}, row {row + 1}: "
            f"id {quoted(ids[row].as_py())} is that of row {first[row] + 1} already"
        )


def read_edges(path: Path, nodes: Path, ids: pa.ChunkedArray) -> NDArray[np.int64]:
    """The two ends of each edge as row numbers of the node table."""
    names = column_names(path)
    if len(names) < 2:
        raise GraphError(f"{path} has one column, {quoted(names[0])}: an edge needs two, its source and its target")
    if len(names) > 2:
        notice(f"{path}: the first two columns are the edges' ends; {', '.join(names[2:5])} not used")
    table = read_columns(path, texts=names[:2], numbers=[])
    ends = np.empty((table.num_rows, 2), dtype=np.int64)
    for side, name in enumerate(names[:2]):
        column = _ids(path, name, table[name])
        known = ids
        if column.type != known.type:
            column, known = pc.cast(column, pa.string()), pc.cast(known, pa.string())
        position = pc.index_in(column, value_set=known.combine_chunks())
        if (row := _first(pc.is_null(position))) is not None:
            stranger = column[row - 1].as_py()
            raise GraphError(
                f"{path}: column {quoted(name)}, row {row}: {quoted(stranger)} is no id of {nodes.name}: add the node"
            )
        ends[:, side] = position.to_numpy()
    return ends


def _features(path: Path, names: Sequence[str], table: pa.Table) -> NDArray[np.float32]:
    matrix = np.empty((table.num_rows, len(names)), dtype=np.float32)
    for position, name in enumerate(names):
        column = table[name]
        with np.errstate(over="ignore"):
            matrix[:, position] = column.cast(pa.float64(), safe=False).to_numpy()  # missing values become NaN
        finite = np.isfinite(matrix[:, position])
        if not finite.all():
            row = int(np.argmin(finite))
            value = column[row].as_py()
            raise GraphError(
                f"{path}: column {quoted(name)}, row {row + 1}: {'no value' if value is None else value} where a "
                "finite number should be: fill it, drop the node, or leave the column out with feature_columns"
            )
    return matrix


def _labels(path: Path, name: str | None, table: pa.Table) -> tuple[NDArray[np.int64] | None, tuple[str, ...] | None]:
    """Class indices as they are where the column holds numbers, else indices into the sorted names."""
    if name is None:
        return None, None
    values = _natural(table[name])
    try:
        if values.dtype.kind == "O":
            return encode_labels(values.tolist())
        return label_array(values.astype(np.int8) if values.dtype == np.bool_ else values), None
    except GraphError as error:
        raise GraphError(f"{path}: column {quoted(name)}: {error}") from None


def _mask(path: Path, name: str, column: pa.ChunkedArray) -> NDArray[np.bool_]:
    mask = np.empty(len(column), dtype=np.bool_)
    for row, value in enumerate(column.to_pylist()):
        if str(value).lower() not in TRUTH:
            raise GraphError(f"{path}: column {quoted(name)}, row {row + 1}: {quoted(value)} is neither true nor false")
        mask[row] = TRUTH[str(value).lower()]
    return mask


def _natural(column: pa.ChunkedArray) -> NDArray[Any]:
    """Text that holds numbers as whole numbers or floats (NaN where empty), anything else as it is: 00501 is text."""
    if _is_text(column.type):
        column = _whole_numbers(column)
    if _is_text(column.type):
        filled = pc.if_else(pc.equal(column, ""), None, column)
        if pc.all(pc.match_substring_regex(filled, NUMBER)).as_py() is not False:
            column = pc.cast(filled, pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _first(condition: Any) -> int | None:
    """The first row, counted from 1, where a condition holds."""
    row = pc.index(condition, True).as_py()
    return None if row < 0 else int(row) + 1
