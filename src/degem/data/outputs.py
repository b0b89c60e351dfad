"""The outputs of your own network in the place of features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.errors import GraphError, quoted
from degem.graph import Graph, as_graph
from degem.graph_inputs import as_array, label_array, node_indices

LOGIT, EMBEDDING = "logit ", "embedding "


def wrap(
    graph: Any = None,
    *,
    logits: Any = None,
    embeddings: Any = None,
    labels: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    train: ArrayLike | None = None,
) -> Graph:
    """A graph as your own network sees it: the network's outputs stand where features do.

    Detectors that read a classifier (``msp``, ``energy``, ``gnnsafe``, ``grasp``, ``knn``, ``mahalanobis``,
    ``latent-ebm``, …) read these and train none; others take them as features. To score a graph that has grown, run
    your network on it and wrap it again.

    Arguments:
        graph: The graph, as ``fit`` takes it; its features are left out. Default: the nodes without edges.
        logits: The class logits of every node, of shape (n, C), in the order of the class indices.
        embeddings: The penultimate layer of every node, of shape (n, d); default: the logits stand in.
        labels: The class index of each node, negative or NaN where unknown; default: the graph's.
        class_names: The name of each column of ``logits``; default: the graph's.
        train: The nodes that your network was trained on, as indices or a mask; other labelled nodes, but for a mask
            ``test``, calibrate. Default: the graph's masks.

    Example:
        >>> from degem import Detector
        >>> rng = np.random.default_rng(0)
        >>> seen = wrap(logits=rng.normal(size=(60, 3)), labels=np.arange(60) % 3, train=np.arange(30))
        >>> detector = Detector.registry["energy"]().fit(seen)
        >>> detector.p_values(wrap(logits=rng.normal(size=(5, 3)))).shape
        (5,)
    """
    parts = {LOGIT: logits, EMBEDDING: embeddings}
    given = {kind: _matrix(kind, values) for kind, values in parts.items() if values is not None}
    if not given:
        raise GraphError("there is nothing to wrap: give logits, embeddings or both")
    bare = Graph.from_arrays(edges=[], features=next(iter(given.values()))) if graph is None else as_graph(graph)
    for kind, matrix in given.items():
        if len(matrix) != bare.num_nodes:
            raise GraphError(f"{kind.strip()}s have {len(matrix)} rows, but there are {bare.num_nodes} nodes")
    if labels is not None:
        bare = bare.replace(labels=label_array(labels), class_names=None)
    if LOGIT in given:
        bare = _of_classes(bare, given[LOGIT].shape[1], class_names)
    names: dict[str, Sequence[object]] = {kind: range(matrix.shape[1]) for kind, matrix in given.items()}
    if LOGIT in given and bare.class_names is not None:
        names[LOGIT] = bare.class_names
    return bare.replace(
        features=np.hstack(list(given.values())),
        feature_names=tuple(f"{kind}{name}" for kind, some in names.items() for name in some),
        # As text: outputs move when a graph grows, so places that name nodes cannot be told by them.
        node_ids=np.array([str(name) for name in bare.node_ids.tolist()], dtype=object),
        masks=dict(bare.masks) if train is None else _masks(bare, train),
        schema=None,
    )


def num_logits(feature_names: Sequence[str] | None) -> int | None:
    """How many columns of a wrapped graph are logits, the first ones; None of a graph that is not wrapped.

    Example:
        >>> num_logits(["logit red", "logit blue", "embedding 0"]), num_logits(["year"])
        (2, None)
    """
    if not feature_names or not all(name.startswith((LOGIT, EMBEDDING)) for name in feature_names):
        return None
    return sum(name.startswith(LOGIT) for name in feature_names)


def read_outputs(path: str | Path, graph: Graph) -> tuple[NDArray[np.float32], list[str] | None]:
    """Outputs of a network from a file, a row a node of the graph, and the names of their columns if it has such.

    Arguments:
        path: An ``.npy`` file with rows in the order of the nodes, or a table (CSV or Parquet) with the nodes' ids in
            its first column.
        graph: The graph.
    """
    from degem.data.columns import open_table  # slow to load, and every detector asks this module for num_logits
    from degem.data.treatments import column_values

    path = Path(path)
    if path.suffix == ".npy":
        try:
            return _matrix(str(path), np.load(path, allow_pickle=False)), None
        except (OSError, ValueError) as error:
            raise GraphError(f"{path} cannot be read: {error}") from None
    if path.suffix not in (".csv", ".parquet"):
        raise GraphError(f"{path}: outputs of a network are read from an .npy, a .csv or a .parquet file")
    source = open_table(path)
    ids, *columns = source.columns
    if not columns:
        raise GraphError(f"{path} has ids alone: beside them stands a column an output")
    table = source.read(source.columns)
    rows = {str(name): row for row, name in enumerate(table[ids].to_pylist())}
    wanted = [str(name) for name in graph.node_ids.tolist()]
    if missing := next((name for name in wanted if name not in rows), None):
        raise GraphError(f"{path} has no row of node {quoted(missing)}: it needs one for each node of the graph")
    values = np.stack([column_values(name, table[name], "as is") for name in columns], axis=1)
    return _matrix(str(path), values[[rows[name] for name in wanted]]), columns


def _matrix(name: str, values: Any) -> NDArray[np.float32]:
    array = as_array(name.strip(), values)
    if array.ndim != 2 or array.shape[1] == 0 or array.dtype.kind not in "fiu":
        raise GraphError(f"{name.strip()}s must be numbers of shape (nodes, columns), got {array.dtype} {array.shape}")
    return array.astype(np.float32)


def _of_classes(graph: Graph, count: int, names: Sequence[str] | None) -> Graph:
    """The graph with its classes numbered as the columns of the logits are; a class without a column is unknown."""
    known = graph.class_names
    if names is None:
        if max(graph.num_classes, len(known or ())) > count or len(known or range(count)) != count:
            raise GraphError(f"there are {count} columns of logits, but {graph.num_classes} classes: name the columns")
        return graph
    if len(names) != count:
        raise GraphError(f"there are {len(names)} class names for {count} columns of logits")
    labels = graph.labels
    if known is not None:
        places = {name: place for place, name in enumerate(names)}
        if graph.labelled.any() and not places.keys() & set(known):
            raise GraphError(f"no column of logits is called like a class: {names[0]!r}, but the class {known[0]!r}")
        labels = np.array([*(places.get(name, -1) for name in known), -1])[labels]
    return graph.replace(labels=labels, class_names=tuple(names))


def _masks(graph: Graph, train: ArrayLike) -> dict[str, NDArray[np.bool_]]:
    seen = np.isin(np.arange(graph.num_nodes), node_indices(train, graph.num_nodes))
    test = graph.masks.get("test", np.zeros_like(seen))
    return {**graph.masks, "train": seen, "val": graph.masks.get("val", graph.labelled & ~seen & ~test) & ~seen}
