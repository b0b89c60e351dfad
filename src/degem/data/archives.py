"""A graph in one ``.npz`` archive of plain arrays. The layout is in ``docs/graph-files.md``."""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.errors import GraphError
from degem.graph import Graph
from degem.index_checks import csr_from_parts

CSR_PARTS = ("features_data", "features_indices", "features_indptr", "features_shape")
SINGLE = {"edges", "labels", "node_ids", "feature_names", "class_names", "features", *CSR_PARTS}
MASK, COLUMN = "mask_", "column_"
# What NumPy and zipfile raise on files that are truncated, encrypted, altered, pickled or no archive at all.
DAMAGE = (OSError, EOFError, ValueError, KeyError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


def write_npz(graph: Graph, path: str | Path) -> None:
    """Write a graph as an ``.npz`` archive that :func:`~degem.read_graph` reads back; a crash leaves the old file.

    Ids and columns that are neither numbers nor booleans are written as text.
    """
    path = Path(path)
    upper = sp.triu(graph.adjacency, format="coo")
    one_way = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    arrays: dict[str, Any] = {
        "edges": np.concatenate([one_way, one_way[:, ::-1]]),
        "labels": graph.labels,
        "node_ids": _plain(graph.node_ids),
        **{MASK + name: mask for name, mask in graph.masks.items()},
        **{COLUMN + name: _plain(column) for name, column in graph.columns.items()},
    }
    if isinstance(graph.features, sp.csr_array):
        matrix = graph.features
        parts = (matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape))
        arrays |= dict(zip(CSR_PARTS, parts, strict=True))
    else:
        arrays["features"] = graph.features
    for name, texts in (("feature_names", graph.feature_names), ("class_names", graph.class_names)):
        if texts is not None:
            arrays[name] = np.array(texts, dtype=str)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as staging:
        part = Path(staging) / "graph.npz"
        np.savez(part, **arrays)
        part.replace(path)


def read_npz(path: Path) -> Graph:
    """The graph in an ``.npz`` archive; nothing in it is ever unpickled."""
    arrays = _load(path)
    unknown = sorted(name for name in arrays if name not in SINGLE and not name.startswith((MASK, COLUMN)))
    if unknown:
        raise GraphError(f"{path}: no graph archive has an array {unknown[0]!r}: see docs/graph-files.md for the names")
    if "edges" not in arrays:
        raise GraphError(f"{path} has no array 'edges': add one of shape (m, 2), with m = 0 for none")
    edges = arrays["edges"]
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise GraphError(f"{path}: edges must have shape (m, 2), got {edges.shape}")
    try:
        return Graph.from_arrays(
            edges=edges,
            features=_features(arrays),
            labels=arrays.get("labels"),
            node_ids=_distinct(arrays.get("node_ids")),
            feature_names=_texts(arrays, "feature_names"),
            class_names=_texts(arrays, "class_names"),
            masks=_prefixed(arrays, MASK),
            columns=_prefixed(arrays, COLUMN),
        )
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None


def _load(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except DAMAGE as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise GraphError(f"{path} is not an .npz archive of plain arrays ({reason}): write one with np.savez") from None


def _features(arrays: dict[str, NDArray[Any]]) -> Any:
    present = [name for name in CSR_PARTS if name in arrays]
    if not present:
        return arrays.get("features")
    if "features" in arrays or len(present) < len(CSR_PARTS):
        raise GraphError(f"features are given either as 'features' or as all of {', '.join(CSR_PARTS)}")
    data, indices, indptr, shape = (arrays[name] for name in CSR_PARTS)
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise GraphError(f"features_shape must be two whole numbers, got {shape.dtype} of shape {shape.shape}")
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise GraphError("features_indices and features_indptr must be whole numbers")
    return csr_from_parts("features", data, indices, indptr, (int(shape[0]), int(shape[1])))


def _distinct(ids: NDArray[Any] | None) -> NDArray[Any] | None:
    if ids is not None:
        _, first, counts = np.unique(ids, return_index=True, return_counts=True)
        if (counts > 1).any():
            again = int(first[counts > 1].min())
            raise GraphError(f"node_ids: {ids.reshape(-1)[again].item()!r} of node {again} is there more than once")
    return ids


def _texts(arrays: dict[str, NDArray[Any]], name: str) -> list[str] | None:
    if name not in arrays:
        return None
    if arrays[name].ndim != 1:
        raise GraphError(f"{name} must be one text each, got shape {arrays[name].shape}")
    return [str(text) for text in arrays[name]]


def _prefixed(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(str) if array.dtype == object else array
