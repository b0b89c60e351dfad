"""The graph every other module works on: immutable, validated when made."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from degem import graph_inputs as inputs
from degem.errors import GraphError, quoted
from degem.graph_checks import (
    check_texts,
    checked_adjacency,
    checked_column,
    checked_columns,
    checked_features,
    checked_labels,
)
from degem.ops.features import Features
from degem.ops.homophily import labelled_edges
from degem.ops.mapped import rows_of
from degem.ops.neighbours import is_weighted, strengths, structural_features
from degem.schema import TableSchema


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Graph:
    r"""An undirected graph :math:`\mathcal{G} = (X, A)` with node features and what is known of its nodes.

    Make one with :meth:`from_arrays`, :meth:`from_pyg`, :meth:`from_networkx` or :func:`degem.read_graph`;
    those tidy the edges (with a notice) before this class checks them. Nothing of a graph can be changed:
    :meth:`replace` and :meth:`subgraph` return new ones that share memory where they can. Your own arrays are
    shared too, not copied: they keep their flags, and writing to them afterwards writes past these checks.

    Arguments:
        features: The node features :math:`X`, of shape :math:`(n, d_0)`; dense or CSR, float32, finite.
        adjacency: The adjacency :math:`A`, of shape :math:`(n, n)`: CSR, symmetric, no self-loops; ones, or positive
            weights.
        labels: The class of each node, :math:`-1` where unknown.
        node_ids: The name of each node, in the order of the rows.
        feature_names: The name of each feature column, if they have one.
        class_names: The name of each class, if they have one; ``labels`` index it.
        masks: Named node sets, such as ``train``, ``val`` and ``test``.
        columns: Further columns of the node table, such as a time or a ground truth.
        schema: How the columns of a table became features, if they come from one.

    Example:
        >>> graph = Graph.from_arrays(features=np.eye(3), edges=[(0, 1), (1, 2)], labels=[0, 1, -1])
        >>> graph
        Graph(3 nodes, 2 edges, 3 features, 2 classes)
        >>> graph.degrees
        array([1, 2, 1])
    """

    features: Features
    adjacency: sp.csr_array
    labels: NDArray[np.int64]
    node_ids: NDArray[Any]
    feature_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    masks: Mapping[str, NDArray[np.bool_]] = dataclasses.field(default_factory=dict)
    columns: Mapping[str, NDArray[Any]] = dataclasses.field(default_factory=dict)
    schema: TableSchema | None = None

    def __post_init__(self) -> None:
        """Check every part and keep it as a read-only view."""
        self._check({field.name for field in dataclasses.fields(self)})

    def _check(self, names: set[str]) -> None:
        """Check the fields of those names, given that the others are checked already."""
        if "features" in names:
            object.__setattr__(self, "features", checked_features(self.features))
        num_nodes, num_features = self.features.shape
        checks: dict[str, Callable[[], Any]] = {
            "adjacency": lambda: checked_adjacency(self.adjacency, num_nodes),
            "labels": lambda: checked_labels(self.labels, num_nodes, self.class_names),
            "node_ids": lambda: checked_column("node_ids", self.node_ids, num_nodes),
            "masks": lambda: checked_columns("mask", self.masks, num_nodes, np.bool_),
            "columns": lambda: checked_columns("column", self.columns, num_nodes, None),
        }
        for name, check in checks.items():
            if name in names:
                object.__setattr__(self, name, check())
        for name in {"feature_names", "class_names", "masks", "columns"} & names:
            check_texts(name, getattr(self, name) or ())
        if self.feature_names is not None and len(self.feature_names) != num_features:
            raise GraphError(f"feature_names has {len(self.feature_names)} names for {num_features} feature columns")

    @property
    def num_nodes(self) -> int:
        """The number of nodes, :math:`n`."""
        return int(self.features.shape[0])

    @property
    def num_edges(self) -> int:
        """The number of undirected edges."""
        return int(self.adjacency.nnz // 2)

    @property
    def num_features(self) -> int:
        """The number of feature columns, :math:`d_0`."""
        return int(self.features.shape[1])

    @property
    def num_classes(self) -> int:
        """The number of classes, one more than the largest label or the number of class names."""
        if self.class_names is not None:
            return len(self.class_names)
        return int(self.labels.max()) + 1

    @property
    def degrees(self) -> NDArray[np.int64]:
        """The number of neighbours of each node."""
        return np.diff(self.adjacency.indptr).astype(np.int64)

    @property
    def strengths(self) -> NDArray[np.float32]:
        """The sum of the weights of each node's edges, which is its degree where no edge has a weight."""
        return strengths(self.adjacency)

    @property
    def is_weighted(self) -> bool:
        """Whether an edge has another weight than 1."""
        return is_weighted(self.adjacency)

    def unweighted(self) -> Graph:
        """The graph without the weights of its edges."""
        ones = np.ones(self.adjacency.nnz, dtype=np.float32)
        parts = (ones, self.adjacency.indices, self.adjacency.indptr)
        return self.replace(adjacency=sp.csr_array(parts, shape=self.adjacency.shape)) if self.is_weighted else self

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which nodes have a label."""
        return self.labels >= 0

    def homophily(self, nodes: NDArray[np.bool_] | None = None) -> float:
        """The share of edges whose two ends have the same label, among labelled ``nodes``; NaN without such edges."""
        labels = self.labels if nodes is None else np.where(nodes, self.labels, -1)
        edges, agree = labelled_edges(self.adjacency, labels)
        return agree / edges if edges else float("nan")

    def replace(self, **changes: Any) -> Graph:
        """A graph with some fields replaced, the rest shared; only what can have become wrong is checked."""
        fields = {field.name for field in dataclasses.fields(self)}
        if unknown := sorted(changes.keys() - fields):
            raise TypeError(f"a Graph has no field {unknown[0]!r}")
        graph: Graph = copy.copy(self)
        for name, value in changes.items():
            object.__setattr__(graph, name, value)
        resized = "features" in changes and np.shape(changes["features"])[:1] != (self.num_nodes,)
        graph._check(fields if resized else {*changes, "labels"})
        return graph

    def subgraph(self, nodes: ArrayLike) -> Graph:
        """The graph induced by ``nodes`` (indices or a mask), in the order given."""
        index = inputs.node_indices(nodes, self.num_nodes)
        adjacency = self.adjacency[index][:, index]
        adjacency.sort_indices()
        return self.replace(
            features=self.features[index] if isinstance(self.features, sp.csr_array) else rows_of(self.features, index),
            adjacency=adjacency,
            labels=self.labels[index],
            node_ids=self.node_ids[index],
            masks={name: mask[index] for name, mask in self.masks.items()},
            columns={name: column[index] for name, column in self.columns.items()},
        )

    def __repr__(self) -> str:
        """The counts, in one line."""
        classes = f", {self.num_classes} classes" if self.num_classes else ""
        return f"Graph({self.num_nodes:,} nodes, {self.num_edges:,} edges, {self.num_features:,} features{classes})"

    @classmethod
    def from_arrays(
        cls,
        *,
        edges: ArrayLike | None = None,
        adjacency: sp.sparray | sp.spmatrix | ArrayLike | None = None,
        edge_weights: ArrayLike | None = None,
        features: ArrayLike | sp.sparray | sp.spmatrix | None = None,
        labels: ArrayLike | None = None,
        num_nodes: int | None = None,
        node_ids: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        masks: Mapping[str, ArrayLike] | None = None,
        columns: Mapping[str, ArrayLike] | None = None,
        schema: TableSchema | None = None,
        structural_seed: int = 0,
    ) -> Graph:
        """A graph from arrays: edges made undirected, duplicates merged, self-loops dropped, each with a notice.

        Arguments:
            edges: Pairs of node indices, of shape (m, 2) or (2, m), a 2 × 2 array being two pairs; or
            adjacency: a SciPy matrix of shape (n, n), whose non-zero entries are edges and their weights.
            edge_weights: The weight of each of ``edges``, a positive number; default: 1.
            features: Node features; without them structural ones are made (log-degree and a random projection).
            labels: Class indices, negative or NaN where unknown.
            num_nodes: Needed only where neither features, labels nor an adjacency give it.
            structural_seed: Seed of the structural features.
        """
        matrix, adjacency = inputs.matrix_or_none("features", features), inputs.matrix_or_none("adjacency", adjacency)
        labels = None if labels is None else inputs.label_array(labels)
        ids = None if node_ids is None else inputs.as_array("node_ids", node_ids)
        named_masks, named_columns = inputs.arrays_by_name("masks", masks), inputs.arrays_by_name("columns", columns)
        count = inputs.infer_num_nodes(num_nodes, matrix, labels, adjacency, ids, edges)
        pairs, weights = inputs.weighted_edges(edges, adjacency, edge_weights, count)
        tidy = inputs.tidy_adjacency(pairs, count, weights)
        if matrix is None:
            inputs.notice("the graph has no features: log-degree and a random projection of its edges stand in")
            matrix, feature_names = structural_features(tidy, seed=structural_seed), None
        return cls(
            features=matrix,
            adjacency=tidy,
            labels=np.full(count, -1) if labels is None else labels,
            node_ids=np.arange(count) if ids is None else ids,
            feature_names=inputs.names_or_none("feature_names", feature_names),
            class_names=inputs.names_or_none("class_names", class_names),
            masks=named_masks,
            columns=named_columns,
            schema=schema,
        )

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """A graph from a ``torch_geometric.data.Data`` with ``edge_index`` and, if present, ``x``, ``y`` and masks.

        ``edge_weight`` holds weights, or else ``edge_attr`` if it has one column.
        """
        if getattr(data, "edge_index", None) is None:
            raise GraphError("the PyG Data has no edge_index: set one (an empty tensor of shape (2, 0) for no edges)")
        edges = inputs.tensor_array("edge_index", data.edge_index)
        if edges.ndim != 2 or len(edges) != 2:
            raise GraphError(f"edge_index must have shape (2, m), got {edges.shape}")
        features, labels = getattr(data, "x", None), getattr(data, "y", None)
        labels = None if labels is None else inputs.tensor_array("y", labels)
        if labels is not None and labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        found = {name: getattr(data, f"{name}_mask", None) for name in ("train", "val", "test")}
        masks = {name: inputs.tensor_array(f"{name}_mask", mask) for name, mask in found.items() if mask is not None}
        if any(mask.ndim == 2 for mask in masks.values()):
            inputs.notice("the PyG Data holds several splits, so no mask is taken: keep one column of train_mask, …")
            masks = {}
        weights = getattr(data, "edge_weight", None)
        if weights is None and (attributes := getattr(data, "edge_attr", None)) is not None:
            if attributes.ndim == 1 or attributes.shape[1] == 1:
                weights = attributes
            else:
                inputs.notice(f"edge_attr has {attributes.shape[1]} columns and is dropped: keep one as edge_weight")
        return cls.from_arrays(
            edges=edges.T,
            edge_weights=None if weights is None else inputs.tensor_array("edge_weight", weights),
            features=None if features is None else inputs.pyg_features(features),
            labels=labels,
            num_nodes=getattr(data, "_store", {}).get("num_nodes"),  # PyG's own guess would go unchecked
            masks=masks,
        )

    @classmethod
    def from_networkx(
        cls, graph: Any, *, feature_attributes: Sequence[str] | None = None, label_attribute: str | None = None
    ) -> Graph:
        """A graph from a NetworkX graph, its features and labels from node attributes, weights from ``weight``.

        Arguments:
            graph: Any NetworkX graph; its nodes' names become ``node_ids``.
            feature_attributes: Node attributes, numbers or vectors. Default: all that every node has as such.
            label_attribute: Node attribute with the class; missing or None where unknown.
        """
        from networkx import Graph as NetworkXGraph  # who has a NetworkX graph has NetworkX
        from networkx import to_scipy_sparse_array

        if not isinstance(graph, NetworkXGraph):
            raise GraphError(f"expected a NetworkX graph, got {quoted(graph)}")
        names, attributes = list(graph.nodes), inputs.names_or_none("feature_attributes", feature_attributes)
        if not names:
            raise GraphError("the graph is empty: it needs at least one node")
        features, columns = inputs.attribute_matrix(graph, names, attributes, label_attribute)
        labels, classes = None, None
        if label_attribute is not None:
            labels, classes = inputs.encode_labels([graph.nodes[name].get(label_attribute) for name in names])
        try:
            adjacency = to_scipy_sparse_array(graph, nodelist=names)
        except (TypeError, ValueError, OverflowError):
            raise GraphError("an edge's attribute 'weight' is no number: correct it or rename it") from None
        return cls.from_arrays(
            adjacency=adjacency,
            features=features,
            labels=labels,
            node_ids=np.fromiter(names, dtype=object, count=len(names)),
            feature_names=columns,
            class_names=classes,
        )


@dataclasses.dataclass(frozen=True)
class NodeSet:
    """Some nodes of a graph.

    Arguments:
        graph: The graph they live in.
        nodes: Their indices.
    """

    graph: Graph
    nodes: NDArray[np.int64]


def as_graph(graph: Any) -> Graph:
    """A :class:`Graph` as it is, or one made from a ``torch_geometric.data.Data``."""
    if isinstance(graph, Graph):
        return graph
    if hasattr(graph, "edge_index"):
        return Graph.from_pyg(graph)
    raise GraphError(
        f"expected a degem.Graph or a torch_geometric.data.Data, got {type(graph).__name__}: "
        "make one with Graph.from_arrays, Graph.from_networkx or degem.read_graph"
    )
