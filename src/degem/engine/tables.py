"""A graph in partitioned Parquet, made into memory maps by tasks: ids become rows by sorting and merging their hashes.

No task and no driver holds more than some files of it. Steps: look at each file; give sources their rows, then targets;
sort edges by rows. What a step writes is sorted, so that what the next one needs of it is a slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
from numpy.typing import NDArray
from pandas.util import hash_array

from degem.data.archives import read_memmap
from degem.data.columns import open_table
from degem.engine.cluster import Ray, Work
from degem.engine.plan import BLOCK_ROWS, MAP_BYTES
from degem.engine.stages import Output
from degem.engine.store import Stored, cache_folder
from degem.errors import GraphError, quoted
from degem.files import replaced
from degem.graph import Graph
from degem.propagation.propagator import spans

MASKS = ("train_mask", "val_mask", "test_mask")
Slices = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class NodeColumns:
    """Which column of the node table is what."""

    ids: str
    label: str | None
    masks: tuple[str, ...]
    features: tuple[str, ...]


def is_partitioned(folder: Path) -> bool:
    """Whether a folder holds folders of Parquet files for nodes and edges."""
    return all(any((folder / name).glob("*.parquet")) for name in ("nodes", "edges"))


def read_partitioned(
    engine: Ray,
    folder: Path,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    feature_columns: Sequence[str] | None = None,
) -> Graph:
    """The graph in ``nodes/*.parquet`` and ``edges/*.parquet`` as memory maps, made once a store.

    Columns of nodes: ids, whole numbers or text; ``label``, whole numbers; ``train_mask``, ``val_mask``, ``test_mask``;
    any others are features, numbers that are taken as they are. Edges have their ends in the first two columns.

    Arguments:
        engine: The engine, connected.
        folder: The folder, which every node sees.
        id_column: The nodes' ids; default: the first column.
        label_column: The nodes' classes; default: ``label``, if there is such a column.
        feature_columns: The features; default: all other columns.
    """
    nodes, edges = _Files.of(folder / "nodes"), _Files.of(folder / "edges")
    columns = roles(nodes.paths[0], id_column, label_column, feature_columns)
    num_nodes, bounds = nodes.firsts[-1], hash_bounds(max(len(nodes.paths), len(edges.paths)))
    buckets, rows = _each(len(bounds) - 1), list(spans(num_nodes, BLOCK_ROWS))

    def done(
        phase: str, stage: Any, shared: tuple[Any, ...], spans: Sequence[slice], *parts: str
    ) -> list[list[Stored]]:
        prefixes = engine.run(Work(phase, stage, shared, spans, parts[-1], memory=MAP_BYTES), engine.on_progress)
        return [[engine.stored(prefix + part) for prefix in prefixes] for part in parts]

    masks = [f"mask{place}" for place in range(len(columns.masks))]
    parts = ["hashes", "rows", *masks, "labels", "ids", "features"]
    found = dict(
        zip(parts, done("read nodes", look_at_nodes, (nodes, columns), _each(len(nodes.paths)), *parts), strict=True)
    )
    known = list(zip(found["hashes"], found["rows"], strict=True))
    ends = done("read edges", look_at_edges, (edges,), _each(len(edges.paths)), "sorted", "other")
    for last in (False, True):
        pairs = list(zip(*ends, strict=True))
        ends = done("join ids", join, (known, pairs, bounds, last), buckets, "other", "sorted")[::-1]
    kind = "<i4" if num_nodes < 2**31 else "<i8"
    shared = (list(zip(*ends, strict=True)), kind)
    counts, indices = done("sort edges", adjacency_rows, shared, rows, "counts", "indices")
    home = (engine.folder or cache_folder(engine.store)) / indices[0].name.partition("/")[0].replace("sort", "graph")
    if not (home / "indptr.npy").exists():  # it is written last
        home.mkdir(parents=True, exist_ok=True)
        gathered(home / "features.npy", found["features"], np.float32)
        gathered(home / "labels.npy", found["labels"], np.int64)
        gathered(home / "node_ids.npy", found["ids"], max(part[:].dtype for part in found["ids"]))
        for name, mask in zip(columns.masks, masks, strict=True):
            gathered(home / f"mask_{name.removesuffix('_mask')}.npy", found[mask], np.bool_)
        gathered(home / "indices.npy", indices, kind)
        starts = np.cumsum(np.concatenate([[0], *(part[:] for part in counts)]))
        with replaced(home / "indptr.npy") as file:
            np.save(file, starts.astype(np.int32 if starts[-1] < 2**31 else np.int64))
    return read_memmap(home)


def write_partitioned(table: pd.DataFrame, folder: Path, rows: int = 1 << 20) -> None:
    """Write a table as ``part-00000.parquet``, …, each there as a whole or not at all; further parts are removed."""
    starts = range(0, max(len(table), 1), rows)
    for place, start in enumerate(starts):
        with replaced(folder / f"part-{place:05d}.parquet") as file:
            table.iloc[start : start + rows].to_parquet(file, index=False)
    for left in sorted(folder.glob("part-*.parquet"))[len(starts) :]:
        left.unlink()


@dataclass(frozen=True)
class _Files:
    """Parquet files in order, how many rows are before each, with the sum at the end, and what tells their versions."""

    paths: list[str]
    firsts: list[int]
    versions: list[tuple[int, int]]

    @classmethod
    def of(cls, folder: Path) -> _Files:
        paths = sorted(folder.absolute().glob("*.parquet"))
        counts = [parquet.read_metadata(path).num_rows for path in paths]
        versions = [(path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
        return cls([str(path) for path in paths], np.cumsum([0, *counts]).tolist(), versions)


def _each(count: int) -> list[slice]:
    return [slice(place, place + 1) for place in range(count)]


def roles(path: str, id_column: str | None, label_column: str | None, features: Sequence[str] | None) -> NodeColumns:
    """The columns of the node table: the first is the id, ``label`` and masks by their names, numbers are features."""
    schema = parquet.read_schema(path)
    ids = id_column or schema.names[0]
    label = label_column or ("label" if "label" in schema.names else None)
    taken = {ids, label, *MASKS}
    chosen = list(features) if features is not None else [name for name in schema.names if name not in taken]
    for name in chosen:
        if name not in schema.names or not (
            pa.types.is_floating(schema.field(name).type) or pa.types.is_integer(schema.field(name).type)
        ):
            raise GraphError(
                f"{path}: column {quoted(name)} is no number: of partitioned Parquet numbers are taken as they are, so "
                "encode it first, or choose others with --feature-columns"
            )
    if label is not None and not pa.types.is_integer(schema.field(label).type):
        raise GraphError(f"{path}: column {quoted(label)}: of partitioned Parquet labels are whole numbers, -1 unknown")
    return NodeColumns(ids, label, tuple(name for name in MASKS if name in schema.names), tuple(chosen))


def look_at_nodes(files: _Files, columns: NodeColumns, span: slice, output: Output) -> None:
    """Of one file of nodes: features, ids, labels and masks, and the hashes of its ids in order, with their rows."""
    path = files.paths[span.start]
    labelled = [columns.label] if columns.label else []
    table = open_table(Path(path)).read([columns.ids, *labelled, *columns.masks, *columns.features])
    features = np.column_stack([table[name].to_numpy().astype(np.float32) for name in columns.features])
    if not np.isfinite(features).all():
        raise GraphError(f"{path}: a feature is missing or no finite number: fill it first")
    for place, name in enumerate(columns.masks):
        output.write(f"mask{place}", table[name].to_numpy().astype(np.bool_))
    labels = np.full(len(table), -1) if columns.label is None else table[columns.label].fill_null(-1).to_numpy()
    hashes = _hashes(table[columns.ids])
    order = np.argsort(hashes, kind="stable")
    output.write("hashes", hashes[order])
    output.write("rows", files.firsts[span.start] + order)
    output.write("labels", labels.astype(np.int64))
    output.write("ids", _plain(table[columns.ids]))
    output.write("features", features)


def look_at_edges(files: _Files, span: slice, output: Output) -> None:
    """Of one file of edges: the hashes of its ends, in the order of the sources."""
    source = open_table(Path(files.paths[span.start]))
    table = source.read(source.columns[:2])
    first, second = (_hashes(table[name]) for name in source.columns[:2])
    order = np.argsort(first, kind="stable")
    output.write("sorted", first[order])
    output.write("other", second[order])


def join(nodes: Slices, edges: Slices, bounds: NDArray[np.int64], last: bool, span: slice, output: Output) -> None:
    """Rows for the ends of edges whose hashes lie between two bounds; sorted by the other end, or, last, by row."""
    low, high = bounds[span.start], bounds[span.stop]
    hashes, rows = _between(nodes, low, high)
    known = pd.Index(hashes)
    if not known.is_unique:
        raise GraphError("two nodes have the same id: give each its own")
    wanted, other = _between(edges, low, high)
    places = known.get_indexer(pd.Index(wanted))
    if strange := int((places < 0).sum()):
        raise GraphError(f"{strange:,} edges or more end at ids that the nodes lack: add the nodes, or drop the edges")
    found = rows[places]
    if last:  # an edge lies in both of its rows
        found, other = np.concatenate([found, other]), np.concatenate([other, found])
    order = np.argsort(other, kind="stable")
    output.write("other", found[order])
    output.write("sorted", other[order])


def adjacency_rows(edges: Slices, kind: str, span: slice, output: Output) -> None:
    """The neighbours of some rows in order, each once, without loops, and how many each row has."""
    rows, neighbours = _between(edges, span.start, span.stop)
    pairs = np.unique(np.stack([rows, neighbours], axis=1)[rows != neighbours], axis=0)
    output.write("counts", np.bincount(pairs[:, 0] - span.start, minlength=span.stop - span.start))
    output.write("indices", pairs[:, 1].astype(kind))


def gathered(path: Path, parts: Sequence[Stored], kind: Any) -> None:
    """Write parts behind each other as one ``.npy`` file; one part is held at a time."""
    shapes = [part[:].shape for part in parts]
    shape = (sum(each[0] for each in shapes), *shapes[0][1:])
    with replaced(path) as file:
        about = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, about)
        for part in parts:
            np.ascontiguousarray(part[:], dtype=kind).tofile(file)


def hash_bounds(num_buckets: int) -> NDArray[np.int64]:
    """Bounds that divide all hashes evenly; above the last there is none."""
    edges = np.linspace(-(2**63), 2**63, num_buckets + 1)[1:-1]
    return np.array([-(2**63), *map(int, edges), 2**63 - 1], dtype=np.int64)


def _between(arrays: Slices, low: int, high: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What lies from one bound up to the other in pairs of arrays, sorted by the first of each."""
    keys, values = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for key, value in arrays:
        ordered = key[:]
        start, stop = np.searchsorted(ordered, [low, high])
        keys.append(ordered[start:stop])
        values.append(value[slice(int(start), int(stop))])
    return np.concatenate(keys), np.concatenate(values)


def _hashes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Hashes of ids, whole numbers as their text is not: both tables must hold the same type. None is the largest."""
    if column.null_count:
        raise GraphError("an id is missing: fill it, or drop the row")
    values = column.to_numpy()
    found = hash_array(values.astype(np.int64 if values.dtype.kind in "iu" else object), categorize=False)
    return np.minimum(found.view(np.int64), 2**63 - 2)


def _plain(column: pa.ChunkedArray) -> NDArray[Any]:
    values: NDArray[Any] = column.to_numpy()
    return values if values.dtype.kind in "iu" else values.astype(str)
