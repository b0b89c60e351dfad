"""Graphs larger than memory: a folder of ``.npy`` files that are opened as memory maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.data.arrays import read_npy
from degem.errors import GraphError, quoted
from degem.graph import Graph
from degem.index_checks import csr_from_parts

REQUIRED = ("features", "indptr", "indices")
OPTIONAL = ("labels", "weights", "node_ids")
MASK = "mask_"


def is_memmap(folder: Path) -> bool:
    """Whether a folder holds a graph of this layout."""
    return (folder / "indptr.npy").is_file()


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
    if unknown := [name for name in names if name not in (*REQUIRED, *OPTIONAL) and not name.startswith(MASK)]:
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
