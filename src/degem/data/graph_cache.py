"""Graphs kept on disk between runs: plain NumPy archives under keys that hold every parameter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from degem.data.archives import plain
from degem.data.arrays import Arrays, read_npz
from degem.data.locations import cache_root
from degem.errors import DegemError
from degem.files import opened, replaced
from degem.graph import Graph
from degem.index_checks import csr_from_parts

LAYOUT = 4  # part of every key: raise it when the layout changes, or how a scenario is made


class Described(BaseModel):
    """Which arrays of an archive are the parts of a graph."""

    features: str | tuple[str, str, str]
    shape: tuple[int, int]
    adjacency: tuple[str, str]
    labels: str
    node_ids: str
    class_names: tuple[str, ...] | None
    masks: dict[str, str]
    columns: dict[str, str]


class About(BaseModel):
    """What an archive holds."""

    graphs: dict[str, Described]
    arrays: dict[str, str]


def cached(
    kind: str, key: Mapping[str, Any], make: Callable[[], tuple[dict[str, Graph], Arrays]]
) -> tuple[dict[str, Graph], Arrays]:
    """Graphs and arrays from the cache, or made now and kept.

    An archive's name ends in its checksum, so one that was changed or cut short is made again.

    Arguments:
        kind: The folder below the cache.
        key: Everything the result depends on; must be JSON.
        make: Makes the graphs and arrays, by name.
    """
    text = json.dumps({"layout": LAYOUT, **key}, sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:24]
    folder = cache_root() / kind
    for path in folder.glob(f"{name}-*.npz"):
        try:
            if path.stem == f"{name}-{_checksum(path)}":
                return read_graphs(path)
        except (OSError, DegemError, ValidationError, KeyError):
            continue  # no archive of ours, whatever its checksum
    graphs, arrays = make()
    fresh = folder / f"{name}.npz"
    write_graphs(fresh, graphs, arrays)
    kept = folder / f"{name}-{_checksum(fresh)}.npz"
    fresh.replace(kept)
    for old in folder.glob(f"{name}-*.npz"):
        if old != kept:
            old.unlink(missing_ok=True)
    return graphs, arrays


def _checksum(path: Path) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_graphs(path: Path, graphs: Mapping[str, Graph], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write graphs and arrays into one archive; an array that several graphs share is written once."""
    store: Arrays = {}
    seen: dict[tuple[Any, ...], tuple[str, NDArray[Any]]] = {}  # keeps each array alive: a freed address comes again

    def put(array: NDArray[Any]) -> str:
        identity = (array.__array_interface__["data"][0], array.shape, array.dtype.str, array.strides)
        if identity not in seen:
            name = f"a{len(seen)}"
            seen[identity] = name, array
            store[name] = plain(array)
        return seen[identity][0]

    about = {
        "graphs": {name: _describe(graph, put) for name, graph in graphs.items()},
        "arrays": {name: put(np.asarray(array)) for name, array in arrays.items()},
    }
    with replaced(path) as file:
        np.savez(file, allow_pickle=False, about=np.array(json.dumps(about)), **store)


def read_graphs(path: Path) -> tuple[dict[str, Graph], Arrays]:
    """What :func:`write_graphs` wrote."""
    store = read_npz(path)
    about = About.model_validate_json(str(store["about"]))
    graphs = {name: _restore(described, store) for name, described in about.graphs.items()}
    return graphs, {name: store[key] for name, key in about.arrays.items()}


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


def _restore(about: Described, store: Arrays) -> Graph:
    num_nodes, _ = about.shape
    indices, indptr = (store[key] for key in about.adjacency)
    features: Any
    if isinstance(about.features, str):
        features = store[about.features]
    else:
        data, columns, rows = (store[key] for key in about.features)
        features = csr_from_parts("features", data, columns, rows, about.shape)
    ones = np.ones(len(indices), dtype=np.float32)
    return Graph(
        features=features,
        adjacency=csr_from_parts("adjacency", ones, indices, indptr, (num_nodes, num_nodes)),
        labels=store[about.labels],
        node_ids=store[about.node_ids],
        class_names=about.class_names,
        masks={name: store[key] for name, key in about.masks.items()},
        columns={name: store[key] for name, key in about.columns.items()},
    )
