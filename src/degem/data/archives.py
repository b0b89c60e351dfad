"""Graphs of plain arrays: one ``.npz`` archive, or a folder of memory maps, for graphs larger than memory.

The layouts are in ``docs/graph-files.md``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.data import arrays as arrays_
from degem.data.arrays import Arrays, read_npy
from degem.errors import GraphError, quoted
from degem.files import replaced
from degem.graph import Graph
from degem.graph_checks import csr_from_parts

CSR_PARTS = ("features_data", "features_indices", "features_indptr", "features_shape")
SINGLE = {"edges", "edge_weights", "labels", "node_ids", "feature_names", "class_names", "features", *CSR_PARTS}
MASK, COLUMN = "mask_", "column_"
REQUIRED = ("features", "indptr", "indices")


def write_npz(graph: Graph, path: str | Path) -> None:
    """Write a graph as an ``.npz`` archive that :func:`~degem.read_graph` reads back; a crash leaves the old file.

    Ids and columns that are neither numbers nor booleans are written as text.
    """
    upper = sp.triu(graph.adjacency, format="coo")
    one_way = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    arrays: Arrays = {
        "edges": np.concatenate([one_way, one_way[:, ::-1]]),
        **({"edge_weights": np.tile(upper.data, 2)} if graph.is_weighted else {}),
        "labels": graph.labels,
        "node_ids": plain(graph.node_ids),
        **{MASK + name: mask for name, mask in graph.masks.items()},
        **{COLUMN + name: plain(column) for name, column in graph.columns.items()},
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
    with replaced(Path(path), follow_link=True) as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_npz(path: Path) -> Graph:
    """The graph in an ``.npz`` archive; nothing in it is ever unpickled."""
    arrays = arrays_.read_npz(path)
    unknown = sorted(name for name in arrays if name not in SINGLE and not name.startswith((MASK, COLUMN)))
    if unknown:
        raise GraphError(
            f"{path}: no graph archive has an array {quoted(unknown[0])}: see docs/graph-files.md for the names"
        )
    if "edges" not in arrays:
        raise GraphError(f"{path} has no array 'edges': add one of shape (m, 2), with m = 0 for none")
    edges = arrays["edges"]
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise GraphError(f"{path}: edges must have shape (m, 2), got {edges.shape}")
    try:
        return Graph.from_arrays(
            edges=edges,
            edge_weights=arrays.get("edge_weights"),
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


def _features(arrays: Arrays) -> Any:
    present = [name for name in CSR_PARTS if name in arrays]
    if not present:
        return arrays.get("features")
    if "features" in arrays or len(present) < len(CSR_PARTS):
        raise GraphError(f"features are given either as 'features' or as all of {', '.join(CSR_PARTS)}")
    data, indices, indptr, shape = (arrays[name] for name in CSR_PARTS)
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise GraphError(f"features_shape must be two whole numbers, got {shape.dtype} of shape {shape.shape}")
    return csr_from_parts("features", data, indices, indptr, (int(shape[0]), int(shape[1])))


def _distinct(ids: NDArray[Any] | None) -> NDArray[Any] | None:
    if ids is not None and ids.ndim == 1:
        _, first, counts = np.unique(ids, return_index=True, return_counts=True)
        if (counts > 1).any():
            again = int(first[counts > 1].min())
            raise GraphError(f"node_ids: {quoted(ids[again].item())} of node {again} is there more than once")
    return ids


def _texts(arrays: Arrays, name: str) -> list[str] | None:
    if name not in arrays:
        return None
    if arrays[name].ndim != 1 or arrays[name].dtype.kind != "U":
        raise GraphError(f"{name} must be one text each, got {arrays[name].dtype} of shape {arrays[name].shape}")
    return [str(text) for text in arrays[name]]


def _prefixed(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def plain(array: NDArray[Any]) -> NDArray[Any]:
    """An array that a file can hold: objects as text."""
    return array.astype(str) if array.dtype == object else array


def read_memmap(folder: str | Path) -> Graph:
    """A graph whose features and edges stay on disk until they are used.

    The folder holds ``features.npy`` of shape (n, d₀) and type float32, the symmetric adjacency in CSR form without
    self-loops as ``indptr.npy`` (n + 1 numbers) and ``indices.npy`` (each row sorted), and, if there are such,
    ``weights.npy`` (float32, one an index), ``labels.npy`` (−1 where unknown), ``node_ids.npy`` and a boolean
    ``mask_NAME.npy`` for each mask. Use int32 for the indices, and for ``indptr`` where it suffices, and int64 for
    labels: other types are read into memory.

    Arguments:
        folder: The folder.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> np.save(folder / "features.npy", np.eye(2, dtype=np.float32))
        >>> np.save(folder / "indptr.npy", np.array([0, 1, 2], dtype=np.int32))
        >>> np.save(folder / "indices.npy", np.array([1, 0], dtype=np.int32))
        >>> read_memmap(folder)
        Graph(2 nodes, 1 edges, 2 features)
    """
    folder = Path(folder)
    names = sorted(file.stem for file in folder.glob("*.npy"))
    known = (*REQUIRED, "labels", "weights", "node_ids")
    if unknown := [name for name in names if name not in known and not name.startswith(MASK)]:
        raise GraphError(
            f"{folder}: no graph of memory maps has an array {quoted(unknown[0])}: see docs/graph-files.md"
        )
    arrays = {name: read_npy(folder / f"{name}.npy") for name in names}
    missing = [name for name in REQUIRED if name not in arrays]
    if missing:
        raise GraphError(f"{folder} has no {missing[0]}.npy: a graph of memory maps needs {', '.join(REQUIRED)}")
    num_nodes = arrays["features"].shape[0] if arrays["features"].ndim else 0
    masks = {name.removeprefix(MASK): array for name, array in arrays.items() if name.startswith(MASK)}
    try:
        return Graph(
            features=arrays["features"],
            adjacency=_adjacency(arrays["indptr"], arrays["indices"], num_nodes, arrays.get("weights")),
            labels=arrays.get("labels", np.full(num_nodes, -1, dtype=np.int64)),
            node_ids=arrays.get("node_ids", np.arange(num_nodes)),
            masks=masks,
        )
    except GraphError as error:
        raise GraphError(f"{folder}: {error}") from None


def _adjacency(
    indptr: NDArray[Any], indices: NDArray[Any], num_nodes: int, weights: NDArray[Any] | None
) -> sp.csr_array:
    if indices.ndim != 1:
        raise GraphError(f"indices has shape {indices.shape}, expected a row of numbers")
    if weights is None:
        weights = np.broadcast_to(np.float32(1), indices.shape)  # one number stands for all: no memory for them
    return csr_from_parts("adjacency", weights, indices, indptr, (num_nodes, num_nodes))
