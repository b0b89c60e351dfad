"""Graphs kept on disk between runs: plain NumPy archives under keys that hold every parameter."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.data.locations import cache_root
from degem.graph import Graph
from degem.index_checks import csr_from_parts

LAYOUT = 3  # part of every key: raise it when the layout changes, or how a scenario is made
Arrays = dict[str, NDArray[Any]]


def cached(
    kind: str, key: Mapping[str, Any], make: Callable[[], tuple[dict[str, Graph], Arrays]]
) -> tuple[dict[str, Graph], Arrays]:
    """Graphs and arrays from the cache, or made now and kept.

    Arguments:
        kind: The folder below the cache.
        key: Everything the result depends on; must be JSON.
        make: Makes the graphs and arrays, by name.
    """
    text = json.dumps({"layout": LAYOUT, **key}, sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:24]
    path = cache_root() / kind / f"{name}.npz"
    if path.is_file():
        try:
            return read_graphs(path)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            path.unlink(missing_ok=True)  # a damaged archive is made again
    graphs, arrays = make()
    write_graphs(path, graphs, arrays)
    return graphs, arrays


def write_graphs(path: Path, graphs: Mapping[str, Graph], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write graphs and arrays into one archive; an array that several graphs share is written once."""
    store: Arrays = {}
    seen: dict[tuple[Any, ...], tuple[str, NDArray[Any]]] = {}  # keeps each array alive: a freed address comes again

    def put(array: NDArray[Any]) -> str:
        identity = (array.__array_interface__["data"][0], array.shape, array.dtype.str, array.strides)
        if identity not in seen:
            name = f"a{len(seen)}"
            seen[identity] = name, array
            store[name] = array.astype(str) if array.dtype == object else array
        return seen[identity][0]

    about = {
        "graphs": {name: _describe(graph, put) for name, graph in graphs.items()},
        "arrays": {name: put(np.asarray(array)) for name, array in arrays.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, staging = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "wb") as file:
        np.savez(file, about=np.array(json.dumps(about)), **store)  # type: ignore[arg-type]
    Path(staging).replace(path)


def read_graphs(path: Path) -> tuple[dict[str, Graph], Arrays]:
    """What :func:`write_graphs` wrote."""
    with np.load(path, allow_pickle=False) as archive:
        store = {name: archive[name] for name in archive.files}
    about = json.loads(str(store["about"]))
    graphs = {name: _restore(described, store) for name, described in about["graphs"].items()}
    return graphs, {name: store[key] for name, key in about["arrays"].items()}


def _describe(graph: Graph, put: Callable[[NDArray[Any]], str]) -> dict[str, Any]:
    features: Any
    if isinstance(graph.features, sp.csr_array):
        features = [put(graph.features.data), put(graph.features.indices), put(graph.features.indptr)]
    else:
        features = put(graph.features)
    return {
        "features": features,
        "shape": graph.features.shape,
        "adjacency": [put(graph.adjacency.indices), put(graph.adjacency.indptr)],
        "labels": put(graph.labels),
        "node_ids": put(graph.node_ids),
        "class_names": graph.class_names,
        "masks": {name: put(mask) for name, mask in graph.masks.items()},
        "columns": {name: put(column) for name, column in graph.columns.items()},
    }


def _restore(about: dict[str, Any], store: Arrays) -> Graph:
    num_nodes, num_features = about["shape"]
    indices, indptr = (store[key] for key in about["adjacency"])
    if isinstance(about["features"], list):
        data, columns, rows = (store[key] for key in about["features"])
        features: Any = csr_from_parts("features", data, columns, rows, (num_nodes, num_features))
    else:
        features = store[about["features"]]
    ones = np.ones(len(indices), dtype=np.float32)
    return Graph(
        features=features,
        adjacency=csr_from_parts("adjacency", ones, indices, indptr, (num_nodes, num_nodes)),
        labels=store[about["labels"]],
        node_ids=store[about["node_ids"]],
        class_names=None if about["class_names"] is None else tuple(about["class_names"]),
        masks={name: store[key] for name, key in about["masks"].items()},
        columns={name: store[key] for name, key in about["columns"].items()},
    )
