"""A graph in two tables, ``nodes`` and ``edges``. See ``docs/graph-files.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from degem.data.columns import Faults, Source, open_table
from degem.data.treatments import column_values, learn_schema
from degem.errors import GraphError, quoted
from degem.graph import Graph
from degem.graph_inputs import encode_labels, label_array, notice
from degem.schema import TREATMENTS, TableSchema, Treatment, UnknownIds

MASKS = ("train", "val", "test")
NUMBER = r"^(-?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|[Nn]a[Nn])$"
TRUTH = {"true": True, "1": True, "false": False, "0": False}
WEIGHT = "weight"
SUFFIXES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What a user says of a graph's tables: the arguments of :func:`degem.read_graph`."""

    id_column: str | None = None
    label_column: str | None = None
    feature_columns: Sequence[str] | None = None
    keep_columns: Sequence[str] = ()
    columns: Mapping[str, str] | None = None
    schema: TableSchema | None = None
    unknown_ids: UnknownIds | None = None
    ignore_weights: bool = False


@dataclass(frozen=True)
class Roles:
    """Which column of the node table is what, and which treatments were chosen."""

    ids: str
    label: str | None
    masks: tuple[str, ...]
    kept: tuple[str, ...]
    features: tuple[str, ...]
    chosen: Mapping[str, Treatment]

    @property
    def all(self) -> list[str]:
        """The names of the columns that have a role."""
        return [self.ids, *([self.label] if self.label else []), *self.masks, *self.kept, *self.features]


def folder_tables(folder: Path) -> tuple[Source, Source]:
    """The tables of nodes and of edges in a folder."""
    return open_table(_table_path(folder, "nodes")), open_table(_table_path(folder, "edges"))


def read_tables(nodes: Source, edges: Source, options: TableOptions) -> Graph:
    """The graph in two tables."""
    arrays, ends, weights = read_parts(nodes, edges, options)
    return Graph.from_arrays(edges=ends, edge_weights=weights, **arrays)


def read_parts(
    nodes: Source, edges: Source, options: TableOptions, before: pa.ChunkedArray | None = None
) -> tuple[dict[str, Any], NDArray[np.int64], NDArray[np.float64] | None]:
    """What ``Graph.from_arrays`` takes of the nodes, the ends of the edges, and weights; all faults are told at once.

    Arguments:
        nodes: The node table.
        edges: The edge table.
        options: What a user says of them.
        before: Ids of nodes that edges may end at, too; their rows come before those of the table.
    """
    roles = _roles(nodes, options)
    table = nodes.read(roles.all)
    if table.num_rows == 0:
        raise GraphError(f"{nodes.name} has no rows below its header: a graph needs at least one node")
    of_nodes, of_edges, arrays = Faults(), Faults(), dict[str, Any]()
    ends, weights, added = np.empty((0, 2), dtype=np.int64), None, 0
    with of_nodes.gathered():
        ids = _ids(roles.ids, table[roles.ids])
        _check_distinct(roles.ids, ids)
        with of_edges.gathered():
            unknown_ids = options.unknown_ids or (options.schema or TableSchema()).unknown_ids
            known = ids if before is None else _joined(before, ids)
            ends, weights, strangers = _read_edges(edges, nodes, known, unknown_ids, options.ignore_weights)
            ids, added = _joined(ids, strangers), len(strangers)
        arrays["node_ids"] = ids.to_numpy(zero_copy_only=False)
    masks = {}
    for name in roles.masks:
        with of_nodes.gathered():
            masks[name.removesuffix("_mask")] = np.append(_mask(name, table[name]), np.zeros(added, dtype=np.bool_))
    if added:  # nodes of which nothing is known but their edges
        nothing = {name: pa.nulls(added, table[name].type) for name in table.column_names}
        table = pa.concat_tables([table, pa.table(nothing, schema=table.schema)])
    labels, classes = None, None
    with of_nodes.gathered():
        labels, classes = _labels(roles.label, table)
    with of_nodes.gathered():
        arrays |= _features(table, roles, options, _rows_to_learn(masks, labels, table.num_rows, added), added)
    told = Faults()
    for source, faults in ((nodes, of_nodes), (edges, of_edges)):
        with told.gathered():
            faults.tell(source.name)
    told.tell()
    arrays |= {"labels": labels, "class_names": classes, "masks": masks, "num_nodes": table.num_rows}
    return arrays | {"columns": {name: _natural(table[name]) for name in roles.kept}}, ends, weights


def _table_path(folder: Path, name: str) -> Path:
    """The table of that name in a folder."""
    found = [path for suffix in SUFFIXES if (path := folder / f"{name}{suffix}").is_file()]
    if not found:
        raise GraphError(f"{folder} holds no {name}.csv or {name}.parquet: a graph's folder has nodes and edges")
    if len(found) > 1:
        raise GraphError(f"{folder} holds both {found[0].name} and {found[1].name}: keep one")
    return found[0]


def _roles(source: Source, options: TableOptions) -> Roles:
    names, features = source.columns, options.feature_columns
    if options.schema is not None and options.columns:
        raise GraphError(f"{source.name}: how columns are encoded was chosen at the fit: leave out --columns")
    if options.schema is not None and options.schema.columns:
        fitted = [column.name for column in options.schema.used]
        if features is not None and list(features) != fitted:
            raise GraphError(f"{source.name}: --feature-columns are not those of the model: leave them out")
        features = fitted
    flags = {
        "--id-column": [options.id_column],
        "--label-column": [options.label_column],
        "--feature-columns": features or (),
        "--keep-columns": options.keep_columns,
    }
    asked = [(name, flag) for flag, given in flags.items() for name in given if name is not None]
    faults, taken = Faults(), set[str]()
    for name, flag in [*asked, *((name, "--columns") for name in options.columns or ())]:
        if name not in names:
            faults.add(f"no column {quoted(name)} ({flag})")
        if name in taken and flag != "--columns":
            faults.add(f"column {quoted(name)} is asked for twice ({flag}): give it one role")
        taken |= {name} if flag != "--columns" else set()
    if faults.found:
        faults.found[-1] += f"; it has {', '.join(names[:20])}" + (", …" if len(names) > 20 else "")
    for name, treatment in (options.columns or {}).items():
        if treatment not in TREATMENTS:
            faults.add(f"--columns: {quoted(treatment)} of {quoted(name)} is none of {', '.join(TREATMENTS)}")
    ids = options.id_column or names[0]
    if options.id_column is None and ids in taken:
        faults.add(f"its first column, {quoted(ids)}, has another role: name the ids' with --id-column (id_column)")
    faults.tell(source.name)
    taken |= {ids}
    label = options.label_column or ("label" if "label" in names and "label" not in taken else None)
    masks = tuple(f"{name}_mask" for name in MASKS if f"{name}_mask" in names and f"{name}_mask" not in taken)
    if features is None:
        taken |= {*masks, label or ids}
        features = [name for name in names if name not in taken]
    chosen = cast("Mapping[str, Treatment]", options.columns or {})
    return Roles(ids, label, masks, tuple(options.keep_columns), tuple(features), chosen)


def _ids(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids as whole numbers where every one is written as such, else as text."""
    if pa.types.is_integer(column.type):
        ids = column
    elif _is_text(column.type):
        ids = _whole_numbers(column)
    else:
        raise GraphError(f"column {quoted(name)} holds {column.type}; ids are text or whole numbers")
    missing = pc.is_null(ids) if pa.types.is_integer(ids.type) else pc.or_kleene(pc.is_null(ids), pc.equal(ids, ""))
    if (row := _first(missing)) is not None:
        raise GraphError(f"column {quoted(name)}, row {row}: the id is missing")
    return ids


def _whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as whole numbers if that loses nothing (007 stays text)."""
    try:
        numbers = pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if pc.cast(numbers, column.type).equals(column) else column  # 0x10 and 007 are text


def _check_distinct(name: str, ids: pa.ChunkedArray) -> None:
    first = pc.index_in(ids, value_set=ids.combine_chunks()).to_numpy()
    repeated = first != np.arange(len(ids))
    if repeated.any():
        row = int(repeated.argmax())
        raise GraphError(
            f"column {quoted(name)}, row {row + 1}: "
            f"id {quoted(ids[row].as_py())} is that of row {first[row] + 1} already"
        )


def _read_edges(
    source: Source, nodes: Source, known: pa.ChunkedArray, unknown_ids: UnknownIds, ignore_weights: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None, pa.ChunkedArray]:
    """The ends of each edge as row numbers of the nodes, its weight, and ids that are to be added behind the nodes."""
    names = source.columns
    if len(names) < 2:
        raise GraphError(f"one column, {quoted(names[0])}: an edge needs two, its source and its target")
    weighted = WEIGHT in names[2:] and not ignore_weights
    if unused := [name for name in names[2:] if name != WEIGHT or ignore_weights]:
        notice(
            f"{source.name}: the first two columns are the edges' ends, {quoted(WEIGHT)} would be their weight; "
            f"{', '.join(unused[:5])} not used"
        )
    table = source.read([*names[:2], *([WEIGHT] if weighted else [])])
    faults, ends = Faults(), []
    for name in names[:2]:
        with faults.gathered():
            ends.append(_ids(name, table[name]))
    weights = None
    if weighted:
        with faults.gathered():
            weights = _weights(column_values(WEIGHT, table[WEIGHT], "as is"))
    faults.tell()
    if len({known.type, *(end.type for end in ends)}) > 1:
        known, *ends = (pc.cast(column, pa.string()) for column in (known, *ends))
    lost = [pc.is_null(place) for place in _places(known, ends)]
    strange = pc.unique(_joined(*(end.filter(where) for end, where in zip(ends, lost, strict=True))))
    added = strange.slice(0, 0)
    if len(strange):
        either = pc.or_(*lost)
        fault = (
            f"{pc.sum(either).as_py():,} of {len(either):,} edges end at {len(strange):,} ids that "
            f"{Path(nodes.name).name} lacks"
        )
        if unknown_ids == "error":
            row, side = min((_first(where) or len(either) + 1, side) for side, where in enumerate(lost))
            raise GraphError(
                f"{fault}, such as column {quoted(names[side])}, row {row}: {quoted(ends[side][row - 1].as_py())}: "
                "add the nodes, or choose --unknown-ids drop or add"
            )
        notice(f"{source.name}: {fault}: " + ("dropped" if unknown_ids == "drop" else "added, with nothing known"))
        if unknown_ids == "drop":
            ends = [end.filter(pc.invert(either)) for end in ends]
            weights = None if weights is None else weights[~either.to_numpy()]
        else:
            added = strange
    places = _places(_joined(known, added), ends)
    return np.stack([place.to_numpy() for place in places], axis=1).astype(np.int64), weights, added


def _weights(values: NDArray[np.float64]) -> NDArray[np.float64]:
    wrong = ~(values >= 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise GraphError(
            f"column {quoted(WEIGHT)}, row {row + 1}: {'no value' if np.isnan(values[row]) else values[row]} where a "
            "weight, a positive number, should be: correct it, or leave weights out with --ignore-weights"
        )
    return values


def _places(known: pa.ChunkedArray, ends: Sequence[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """Where ids stand among the known ones, null where they do not."""
    values = known.combine_chunks()
    return [pc.index_in(end, value_set=values) for end in ends]


def _joined(ids: Any, more: Any) -> pa.ChunkedArray:
    """Ids and further ones behind them, as text where they are of two types."""
    if ids.type != more.type:
        ids, more = pc.cast(ids, pa.string()), pc.cast(more, pa.string())
    parts = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in (ids, more)]
    return pa.chunked_array(parts, parts[0].type)


def _rows_to_learn(
    masks: Mapping[str, NDArray[np.bool_]], labels: NDArray[np.int64] | None, num_nodes: int, added: int
) -> NDArray[np.bool_]:
    """The nodes a schema is learnt from: those in distribution that no mask holds out."""
    everyone = np.arange(num_nodes) < num_nodes - added
    labelled = everyone if labels is None or not (labels >= 0).any() else labels >= 0
    rows = masks.get("train", labelled) & ~masks.get("val", ~everyone) & everyone
    return rows if rows.any() else everyone


def _features(
    table: pa.Table, roles: Roles, options: TableOptions, rows: NDArray[np.bool_], added: int
) -> dict[str, Any]:
    """Features, their names and their schema: a fitted one applied, or one learnt from some rows."""
    faults, schema = Faults(), options.schema
    if schema is None:
        unknown_ids = options.unknown_ids or "error"
        schema, values = learn_schema(table.select(roles.features), roles.chosen, rows, unknown_ids, faults)
    else:
        if not schema.columns:
            schema = schema.of_raw(roles.features)
        values = {}
        for column in schema.used:
            with faults.gathered():
                values[column.name] = column_values(column.name, table[column.name], column.treatment)
    for column in schema.used:
        if column.treatment == "as is" and column.name in values:
            with faults.gathered():
                values[column.name] = _finite(column.name, values[column.name], added)
    faults.tell()
    left_out = [name for name in roles.features if name not in values and name not in roles.chosen]
    if left_out and options.schema is None:
        notice(f"columns that hold nothing, or text of too many kinds, are left out: {', '.join(left_out[:10])}")
    if not schema.used:
        return {}
    features, names = schema.encoded([values[column.name] for column in schema.used])
    return {"features": features, "feature_names": names, "schema": schema}


def _finite(name: str, values: NDArray[Any], added: int) -> NDArray[np.float32]:
    """Numbers taken as they are, 0 of the nodes that were added; a missing one is an error."""
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float32)
    numbers[len(numbers) - added :] = 0
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argmin(finite))
        raise GraphError(
            f"column {quoted(name)}, row {row + 1}: {'no value' if np.isnan(values[row]) else values[row]} where a "
            'finite number should be: fill it, or have the column encoded at the fit (--columns: "number")'
        )
    return numbers


def _labels(name: str | None, table: pa.Table) -> tuple[NDArray[np.int64] | None, tuple[str, ...] | None]:
    """Class indices as they are where the column holds numbers, else indices into the sorted names."""
    if name is None:
        return None, None
    values = _natural(table[name])
    try:
        if values.dtype.kind == "O":
            return encode_labels(values.tolist())
        return label_array(values.astype(np.int8) if values.dtype == np.bool_ else values), None
    except GraphError as error:
        raise GraphError(f"column {quoted(name)}: {error}") from None


def _mask(name: str, column: pa.ChunkedArray) -> NDArray[np.bool_]:
    mask = np.empty(len(column), dtype=np.bool_)
    for row, value in enumerate(column.to_pylist()):
        if str(value).lower() not in TRUTH:
            raise GraphError(f"column {quoted(name)}, row {row + 1}: {quoted(value)} is neither true nor false")
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
