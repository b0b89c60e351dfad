"""Graphs in spoilt files. A graph that is accepted must be what an independent reader finds in the file."""

from __future__ import annotations

import csv
import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import scipy.sparse as sp

from degem import Graph, read_graph
from degem.data.onto import read_onto
from degem.schema import TableSchema
from fuzz.mutate import spoil_array, spoil_bytes

Attempt = Callable[[], None]
IDS = ["ann", "bob", "cid", "dan"]
NODES = pd.DataFrame(
    {
        "id": IDS,
        "label": ["red", "", "blue", "red"],
        "x": [0.5, 1.5, -300, 4],
        "y": [1, 2, 3, 4],
        "train_mask": [1, 0, 1, 0],
    }
)
EDGES = pd.DataFrame({"source": ["ann", "bob", "cid"], "target": ["bob", "cid", "ann"]})
TABLES = {"nodes": NODES.to_csv(index=False).encode(), "edges": EDGES.to_csv(index=False).encode()}


class SilentError(AssertionError):
    """Something else was accepted than what is in the file."""


def expect(condition: object, what: str) -> None:
    """Raise where what was accepted is not what is there."""
    if not condition:
        raise SilentError(what)


def small_graph() -> Graph:
    """A graph with every part."""
    return Graph.from_arrays(
        features=np.arange(12, dtype=np.float32).reshape(4, 3),
        edges=[(0, 1), (1, 2), (2, 3)],
        labels=[0, 1, -1, 0],
        node_ids=IDS,
        feature_names=["a", "b", "c"],
        class_names=["red", "blue"],
        masks={"train": [True, False, False, True]},
        columns={"year": [1999, 2000, 2001, 2002]},
    )


def csv_folder(rng: Random, folder: Path) -> Attempt:
    """A folder of CSV with spoilt bytes, rows or cells."""
    texts = _spoilt_tables(rng, folder, TABLES)

    def attempt() -> None:
        read_graph(folder)
        graph = read_graph(folder, schema=TableSchema())
        rows = _rows(texts["nodes"])
        _same_nodes(graph, rows, 0)
        expect(_pairs(graph) == _listed(texts["edges"]), "other edges")
        for row, label in zip(rows, graph.labels, strict=True):
            found = "" if label < 0 else str(graph.class_names[label] if graph.class_names else label)
            expect(_same_label(row.get("label") or "", found), f"class {found[:40]!r}")

    return attempt


def new_nodes(rng: Random, folder: Path) -> Attempt:
    """New nodes in a spoilt folder of CSV, joined to a graph."""
    old = small_graph()
    nodes, edges = b"id,a,b,c\neve,0.5,1,3\nfay,2,1,-4\n", b"source,target\neve,ann\nfay,eve\nann,fay\n"
    texts = _spoilt_tables(rng, folder, {"nodes": nodes, "edges": edges})

    def attempt() -> None:
        graph = read_onto(folder, old)
        _same_nodes(graph, _rows(texts["nodes"]), old.num_nodes)
        expect(np.array_equal(graph.features[: old.num_nodes], old.features), "other old features")
        expect(_pairs(graph) == _pairs(old) | _listed(texts["edges"]), "other edges")

    return attempt


def _spoilt_tables(rng: Random, folder: Path, tables: dict[str, bytes]) -> dict[str, bytes]:
    """Two tables as CSV files, one of them or both spoilt."""
    texts = dict(tables)
    for name in rng.choice([["nodes"], ["nodes"], ["edges"], ["nodes", "edges"]]):
        texts[name] = spoil_bytes(rng, texts[name])
    for name, text in texts.items():
        (folder / f"{name}.csv").write_bytes(text)
    return texts


def _rows(text: bytes) -> list[dict[str, str]]:
    rows = csv.DictReader(io.StringIO(text.decode("utf-8-sig"), newline=""))
    return [row for row in rows if any(row.values())]


def _listed(text: bytes) -> set[frozenset[str]]:
    """The edges in a table, without loops."""
    pairs = {frozenset(list(row.values())[:2]) for row in _rows(text)}
    return {pair for pair in pairs if len(pair) == 2}


def _pairs(graph: Graph) -> set[frozenset[str]]:
    names = [str(name) for name in graph.node_ids]
    return {frozenset((names[row], names[column])) for row, column in zip(*graph.adjacency.nonzero(), strict=True)}


def _same_nodes(graph: Graph, rows: list[dict[str, str]], start: int) -> None:
    """The nodes of a graph from one on are the rows of a table."""
    expect(graph.num_nodes - start == len(rows), f"{graph.num_nodes - start} nodes of {len(rows)} rows")
    ids = [str(name) for name in graph.node_ids[start:]]
    expect(ids == [next(iter(row.values())) for row in rows], "other ids")
    for column, name in enumerate(graph.feature_names or ()):
        with np.errstate(over="ignore"):
            values = np.array([_number(row[name]) for row in rows]).astype(np.float32)
        expect(np.array_equal(graph.features[start:, column], values), f"other features in {name[:40]!r}")


def _same_label(written: str, found: str) -> bool:
    """Whether a class is the one written; numbers may be written in many ways, and negative ones are no class."""
    try:
        number = float(written or "nan")
    except ValueError:
        return written == found
    return written == found or found == ("" if not number >= 0 else str(int(number)))


def _number(text: str) -> float:
    return {"true": 1.0, "false": 0.0}.get(text.strip().lower()) or float(text.strip() or "nan")


def parquet_folder(rng: Random, folder: Path) -> Attempt:
    """A folder of Parquet with spoilt bytes, or whole but of odd columns."""
    nodes, edges = NODES.copy(), EDGES.copy()
    odd = rng.random() < 0.4
    if odd:
        name = rng.choice(list(nodes))
        nodes[name] = _odd_column(rng, len(nodes))
    nodes.to_parquet(folder / "nodes.parquet", compression=rng.choice([None, "snappy", "zstd", "gzip"]))
    edges.to_parquet(folder / "edges.parquet")
    if not odd:
        victim = folder / rng.choice(["nodes.parquet", "edges.parquet"])
        victim.write_bytes(spoil_bytes(rng, victim.read_bytes()))

    def attempt() -> None:
        read_graph(folder)
        graph = read_graph(folder, schema=TableSchema())
        table = pq.read_table(folder / "nodes.parquet").replace_schema_metadata(None).to_pandas(ignore_metadata=True)
        expect(graph.num_nodes == len(table), "another number of nodes")
        for column, name in enumerate(graph.feature_names or ()):
            with np.errstate(over="ignore"):
                expect(np.array_equal(graph.features[:, column], table[name].to_numpy(np.float32)), f"other {name!r}")

    return attempt


def _odd_column(rng: Random, length: int) -> object:
    makers: list[Callable[[], object]] = [
        lambda: [[1.0, 2.0]] * length,
        lambda: [None] * length,
        lambda: [b"\xff\xfe"] * length,
        lambda: [{"a": 1}] * length,
        lambda: pd.Categorical(["x" * rng.choice([1, 10**6])] * length),
        lambda: pd.to_datetime(["2020-01-01"] * length),
        lambda: pd.array([1, None, 2, 3][:length], dtype="Int64"),
        lambda: [2**63 - 1, -(2**63), 0, 1][:length],
        lambda: np.array([np.nan, np.inf, 1e300, 0][:length]),
        lambda: ["0x10", "007", "1e5", ""][:length],
        lambda: ["\x1b[31m", "=1+1", "\u2028", "a" * 100_000][:length],
        lambda: [True, False, None, True][:length],
        lambda: pd.to_timedelta([1, 2, 3, 4][:length]),
    ]
    return rng.choice(makers)()


def npz(rng: Random, folder: Path) -> Attempt:
    """An archive of spoilt arrays, of spoilt bytes, or packed in an odd way."""
    sparse = rng.random() < 0.5
    arrays = _archive_arrays(sparse)
    style = rng.randrange(4)
    if style == 0:
        for name in rng.sample(sorted(arrays), rng.randint(1, 2)):
            arrays[name] = spoil_array(rng, arrays[name])
    if style == 1:
        arrays.pop(rng.choice(sorted(arrays)))
        arrays[rng.choice(["features", "mask_x", "column_", "x", "node_ids", "edges"])] = spoil_array(rng, np.arange(4))
    path = folder / "graph.npz"
    (np.savez_compressed if rng.random() < 0.3 else np.savez)(path, **arrays)
    if style == 2:
        path.write_bytes(spoil_bytes(rng, path.read_bytes()))
    if style == 3:
        _repack(rng, path, arrays)

    def attempt() -> None:
        graph = read_graph(path)
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
        _compare(graph, found)

    return attempt


def _archive_arrays(sparse: bool) -> dict[str, np.ndarray]:
    graph = small_graph()
    arrays = {
        "edges": np.array([(0, 1), (1, 0), (1, 2), (2, 1)]),
        "labels": graph.labels,
        "node_ids": graph.node_ids.astype(str),
        "mask_train": graph.masks["train"],
        "column_year": graph.columns["year"],
    }
    if not sparse:
        return arrays | {"features": graph.features}
    matrix = sp.csr_array(graph.features)
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape)}
    return arrays | {f"features_{name}": part for name, part in parts.items()}


def _repack(rng: Random, path: Path, arrays: dict[str, np.ndarray]) -> None:
    """The members with forged headers, twice, with strangers among them, or packed in odd ways."""
    method = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    victim = rng.choice(sorted(arrays))
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array)
            body = content.getvalue()
            if name == victim:
                body = rng.choice([_forged(rng, body), spoil_bytes(rng, body), body + b"more", body[:-1], b""])
            archive.writestr(f"{name}.npy", body)
        match rng.randrange(4):
            case 0:
                archive.writestr(rng.choice(["readme.txt", "x", "edges", "../x.npy"]), b"hello")
            case 1:
                archive.writestr(f"{victim}.npy", b"")


def _forged(rng: Random, body: bytes) -> bytes:
    """A .npy file whose header says something else."""
    shape = rng.choice(
        ["(1000000000, 0)", "(3000000000,)", "(4,)", "()", "(2, -2)", "(4" + ", 1" * 40 + ")", "(1" * 999]
    )
    kind = rng.choice(["<U0", "|O", "<f8", "<U999999999", "|V8", "[('a', '<i4')]", "<i8", "<c16", "O" * 9999])
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(100) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", min(len(header), 65_535)) + header + body[128:]


def _compare(graph: Graph, found: dict[str, np.ndarray]) -> None:
    if "features" in found:
        with np.errstate(over="ignore"):
            expect(np.array_equal(np.asarray(graph.features), found["features"].astype(np.float32)), "other features")
    elif "features_data" in found:
        parts = (found["features_data"], found["features_indices"], found["features_indptr"])
        dense = np.zeros(found["features_shape"], dtype=np.float64)
        for row, (start, end) in enumerate(zip(parts[2][:-1], parts[2][1:], strict=True)):
            for column, value in zip(parts[1][start:end], parts[0][start:end], strict=True):
                dense[row, column] += value
        expect(np.allclose(graph.features.toarray(), dense, rtol=1e-6), "other sparse features")
    pairs = {frozenset(map(int, pair)) for pair in found["edges"] if pair[0] != pair[1]}
    ends = {frozenset(map(int, pair)) for pair in zip(*graph.adjacency.nonzero(), strict=True)}
    expect(pairs == ends, "other edges")
    if "labels" in found:
        labels = np.nan_to_num(found["labels"].astype(np.float64), nan=-1)
        expect(np.array_equal(graph.labels, np.maximum(labels, -1)), "other labels")


def memory_maps(rng: Random, folder: Path) -> Attempt:
    """A folder of memory maps of spoilt arrays or bytes."""
    graph = small_graph()
    arrays = {
        "features": graph.features,
        "indptr": graph.adjacency.indptr,
        "indices": graph.adjacency.indices,
        "labels": graph.labels,
        "mask_train": graph.masks["train"],
    }
    victim = rng.choice(sorted(arrays))
    spoil_values = rng.random() < 0.5
    if spoil_values:
        arrays[victim] = spoil_array(rng, arrays[victim])
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    if not spoil_values:
        path = folder / f"{victim}.npy"
        path.write_bytes(rng.choice([spoil_bytes, _forged])(rng, path.read_bytes()))

    def attempt() -> None:
        read = read_graph(folder)
        with np.errstate(over="ignore"):
            features = np.load(folder / "features.npy").astype(np.float32)
        expect(np.array_equal(read.features, features), "other features")
        for name, part in (("indptr", read.adjacency.indptr), ("indices", read.adjacency.indices)):
            expect(np.array_equal(np.load(folder / f"{name}.npy"), part), f"other {name}")
        expect(np.array_equal(np.load(folder / "labels.npy"), read.labels), "other labels")

    return attempt
