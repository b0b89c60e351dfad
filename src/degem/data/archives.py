"""A graph in one ``.npz`` archive of plain arrays. The layout is in ``docs/graph-files.md``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.data import arrays as arrays_
from degem.data.arrays import Arrays
from degem.errors import GraphError, quoted
from degem.graph import Graph
from degem.index_checks import csr_from_parts

CSR_PARTS = ("features_data", "features_indices", "features_indptr", "features_shape")
SINGLE = {"edges", "edge_weights", "labels", "node_ids", "feature_names", "class_names", "features", *CSR_PARTS}
MASK, COLUMN = "mask_", "column_"


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
    arrays_.write_npz(Path(path), arrays)


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
