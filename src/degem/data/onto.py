"""New nodes joined to the graph that they arrive in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.data.tables import read_edges, read_nodes, table_path
from degem.errors import GraphError, quoted
from degem.graph import Graph


def read_onto(
    folder: str | Path,
    graph: Graph,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    feature_columns: Sequence[str] | None = None,
    keep_columns: Sequence[str] = (),
) -> Graph:
    """A graph and, behind its nodes, new ones from a folder whose edges may end at nodes of either.

    It is for scoring: the joined graph has features, edges and ids, but neither labels, masks nor columns.

    Arguments:
        folder: The tables of the new nodes and of their edges.
        graph: The graph they arrive in.
        id_column: This and the others as in :func:`degem.read_graph`.

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
    nodes, edges = table_path(Path(folder), "nodes"), table_path(Path(folder), "edges")
    ids, new = read_nodes(nodes, id_column, label_column, feature_columns, keep_columns)
    old_ids = graph.node_ids.astype(str)
    known = pa.chunked_array([pa.array(old_ids, pa.string()), *pc.cast(ids, pa.string()).chunks])
    again = np.isin(new["node_ids"].astype(str), old_ids)
    if again.any():
        row = int(again.argmax())
        raise GraphError(
            f"{nodes}: row {row + 1}: the graph that the nodes arrive in has {quoted(str(new['node_ids'][row]))} "
            f"already, and {int(again.sum()) - 1:,} more: leave out what is not new"
        )
    return Graph.from_arrays(
        edges=np.concatenate([np.stack(graph.adjacency.nonzero(), axis=1), read_edges(edges, nodes, known)]),
        features=_stacked(nodes, graph, new["features"], new["feature_names"]),
        node_ids=known.to_numpy(),
        feature_names=graph.feature_names or new["feature_names"],
    )


def _stacked(
    nodes: Path, graph: Graph, features: NDArray[np.float32] | None, names: Sequence[str] | None
) -> NDArray[Any] | sp.csr_array:
    """The features of both, which must be the same columns."""
    old, width = graph.features, 0 if features is None else features.shape[1]
    if features is None or width != graph.num_features:
        raise GraphError(f"{nodes} has {width} feature columns, and the graph has {graph.num_features}")
    if graph.feature_names is not None and tuple(names or ()) != graph.feature_names:
        pairs = zip(names or (), graph.feature_names, strict=True)
        got, expected = next(pair for pair in pairs if pair[0] != pair[1])
        raise GraphError(f"{nodes}: feature {quoted(got)} stands where the graph has {quoted(expected)}")
    return sp.csr_array(sp.vstack([old, sp.csr_array(features)])) if sp.issparse(old) else np.vstack([old, features])
