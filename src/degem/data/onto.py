"""New nodes joined to the graph that they arrive in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.data.tables import TableOptions, folder_tables, read_parts
from degem.errors import GraphError, quoted
from degem.graph import Graph
from degem.ops.features import Features, stacked
from degem.schema import TableSchema


def read_onto(folder: str | Path, graph: Graph, **options: Any) -> Graph:
    """A graph and, behind its nodes, new ones from a folder whose edges may end at nodes of either.

    It is for scoring: the joined graph has features, edges and ids, but neither labels, masks nor columns.

    Arguments:
        folder: The tables of the new nodes and of their edges.
        graph: The graph they arrive in.
        options: As :func:`degem.read_graph` takes them; columns are encoded as those of the graph were.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "nodes.csv").write_text("id,x\\ncid,0.5\\n")
        >>> _ = (folder / "edges.csv").write_text("source,target\\ncid,ann\\nann,cid\\n")
        >>> old = Graph.from_arrays(features=[[0.0], [1.0]], edges=[(0, 1), (1, 0)], node_ids=["ann", "bob"])
        >>> read_onto(folder, old).adjacency.toarray()
        array([[0., 1., 1.],
               [1., 0., 0.],
               [1., 0., 0.]], dtype=float32)
    """
    nodes, edges = folder_tables(Path(folder))
    old_ids = graph.node_ids.astype(str)
    how = TableOptions(**options)
    schema = graph.schema or how.schema or TableSchema()
    if not schema.columns:
        how = replace(how, feature_columns=how.feature_columns or graph.feature_names)
    new, ends, weights = read_parts(
        nodes, edges, replace(how, schema=schema), before=pa.chunked_array([old_ids], pa.string())
    )
    again = np.isin(new["node_ids"].astype(str), old_ids)
    if again.any():
        row = int(again.argmax())
        raise GraphError(
            f"{nodes.name}: row {row + 1}: the graph that the nodes arrive in has {quoted(str(new['node_ids'][row]))} "
            f"already, and {int(again.sum()) - 1:,} more: leave out what is not new"
        )
    old = sp.coo_array(graph.adjacency)
    if weights is not None or graph.is_weighted:
        weights = np.concatenate([old.data, np.ones(len(ends)) if weights is None else weights])
    return Graph.from_arrays(
        edges=np.concatenate([np.stack(old.coords, axis=1), ends]),
        edge_weights=weights,
        features=_stacked(nodes.name, graph, new.get("features"), new.get("feature_names")),
        node_ids=np.concatenate([old_ids, new["node_ids"].astype(str)]).astype(object),
        feature_names=graph.feature_names or new["feature_names"],
        schema=graph.schema,
    )


def _stacked(nodes: str, graph: Graph, features: NDArray[np.float32] | None, names: Sequence[str] | None) -> Features:
    """The features of both, which must be the same columns."""
    width = 0 if features is None else features.shape[1]
    if features is None or width != graph.num_features:
        raise GraphError(f"{nodes} has {width} feature columns, and the graph has {graph.num_features}")
    if graph.feature_names is not None and tuple(names or ()) != graph.feature_names:
        pairs = zip(names or (), graph.feature_names, strict=True)
        got, expected = next(pair for pair in pairs if pair[0] != pair[1])
        raise GraphError(f"{nodes}: feature {quoted(got)} stands where the graph has {quoted(expected)}")
    return stacked(graph.features, features)
