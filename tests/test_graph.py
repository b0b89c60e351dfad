import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch_geometric.data import Data

from degem import Graph
from degem.errors import GraphError, GraphNotice
from degem.graph import as_graph
from degem.graph_inputs import encode_labels, notice

BOTH_WAYS = [(0, 1), (1, 0), (1, 2), (2, 1)]


def notices(make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = make()
    return graph, [str(entry.message) for entry in caught if entry.category is GraphNotice]


def path_graph(**changes):
    return Graph.from_arrays(**{"features": np.eye(3), "edges": BOTH_WAYS, "labels": [0, 1, -1], **changes})


# -- the parts are kept as given ---------------------------------------------------------------------------------


def test_a_tidy_graph_is_taken_without_a_word():
    graph, said = notices(path_graph)
    assert said == []
    assert graph.degrees.tolist() == [1, 2, 1]
    assert graph.num_edges == 2
    assert repr(graph) == "Graph(3 nodes, 2 edges, 3 features, 2 classes)"
    assert graph.labelled.tolist() == [True, True, False]


def test_sparse_features_stay_sparse():
    graph = path_graph(features=sp.coo_array(np.eye(3)))
    assert isinstance(graph.features, sp.csr_array)
    assert graph.features.dtype == np.float32


@pytest.mark.parametrize("sparse", [False, True])
def test_the_callers_arrays_keep_flags_and_values(sparse):
    features = np.array([[0, 2], [3, 0], [1, 1]], dtype=np.float32)
    given_features = sp.csr_array(features) if sparse else features
    adjacency = sp.csr_array(np.array([[1, 1, 0], [0, 0, 2], [0, 0, 0]], dtype=np.float32))
    parts = [adjacency.data, adjacency.indices, adjacency.indptr]
    parts += [given_features.data, given_features.indices, given_features.indptr] if sparse else [features]
    labels, mask = np.array([0, 1, -1]), np.array([True, False, False])
    parts += [labels, mask]
    before = [part.copy() for part in parts]
    graph = Graph.from_arrays(features=given_features, adjacency=adjacency, labels=labels, masks={"train": mask})
    for part, copy in zip(parts, before, strict=True):
        assert part.flags.writeable
        assert np.array_equal(part, copy)
    for array in (graph.labels, graph.masks["train"], graph.adjacency.data, graph.adjacency.indices):
        assert not array.flags.writeable
    values = graph.features.data if sparse else graph.features
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 9


def test_unsorted_sparse_features_are_sorted_in_a_copy():
    matrix = sp.csr_array((np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    graph = Graph.from_arrays(features=matrix, edges=[])
    assert graph.features.toarray().tolist() == [[2, 1]]
    assert matrix.indices.tolist() == [1, 0]


def test_fields_and_mappings_cannot_be_changed():
    graph = path_graph(masks={"train": [True, False, False]})
    with pytest.raises(AttributeError):
        graph.labels = None
    with pytest.raises(TypeError):
        graph.masks["val"] = graph.masks["train"]


def test_node_order_is_kept():
    graph = path_graph(node_ids=["c", "a", "b"])
    assert graph.node_ids.tolist() == ["c", "a", "b"]
    assert graph.features.argmax(axis=1).tolist() == [0, 1, 2]


# -- what is tidied is said --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        ([(0, 1), (1, 2), (2, 1)], ["1 edges given in one direction only taken as undirected: direction is dropped"]),
        ([(0, 1), (1, 2)], ["2 edges given in one direction only taken as undirected: direction is dropped"]),
        ([*BOTH_WAYS, (1, 1), (0, 0)], ["2 self-loops dropped"]),
        ([*BOTH_WAYS, (1, 0), (1, 0)], ["2 duplicate edges merged"]),
        (
            [(2, 2), (1, 0), (1, 0), (1, 2)],
            [
                "1 self-loops dropped",
                "1 duplicate edges merged",
                "2 edges given in one direction only taken as undirected: direction is dropped",
            ],
        ),
    ],
)
def test_each_kind_of_tidying_gets_one_notice(edges, said):
    graph, heard = notices(lambda: path_graph(edges=edges))
    assert heard == said
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_a_notice_points_at_the_callers_line():
    with pytest.warns(GraphNotice) as caught:
        Graph.from_arrays(features=np.eye(2), edges=[(0, 1)])
    assert caught[0].filename == __file__


def test_the_entries_of_an_adjacency_are_its_weights():
    weighted = sp.coo_array(([0.5, 0.5, 0.0], ([0, 1, 2], [1, 0, 2])), shape=(3, 3))
    graph, said = notices(lambda: path_graph(edges=None, adjacency=weighted))
    assert said == []
    assert graph.num_edges == 1
    assert graph.strengths.tolist() == [0.5, 0.5, 0]
    assert graph.degrees.tolist() == [1, 1, 0]
    assert graph.unweighted().strengths.tolist() == [1, 1, 0]
    assert (graph.is_weighted, graph.unweighted().is_weighted) == (True, False)


@pytest.mark.parametrize(
    ("edges", "weights", "expected", "said"),
    [
        ([(0, 1), (1, 0)], [2, 2], 2, []),
        ([(0, 1)], [2], 2, ["1 edges given in one direction"]),
        ([(0, 1), (1, 0)], [2, 4], 3, ["1 edges with another weight in each direction have the mean"]),
        ([(0, 1), (0, 1), (1, 0)], [1, 2, 3], 3, ["1 duplicate edges merged, their weights added"]),
        ([(0, 1), (1, 0), (1, 2)], [2, 2, 0], 2, ["1 edges of weight 0 dropped"]),
        ([(0, 1), (1, 0), (1, 1)], [2, 2, 5], 2, ["1 self-loops dropped"]),
    ],
)
def test_weights_of_tidied_edges(edges, weights, expected, said):
    graph, heard = notices(lambda: path_graph(edges=edges, edge_weights=weights))
    assert [line[: len(start)] for line, start in zip(heard, said, strict=True)] == said
    assert graph.adjacency.toarray().tolist() == [[0, expected, 0], [expected, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("weight", [-1, np.nan, np.inf, 1e39, 1e-60, "a", [1]])
def test_weights_that_are_none(weight):
    with pytest.raises(GraphError, match="edge_weights"):
        path_graph(edges=[(0, 1), (1, 0)], edge_weights=[1, weight])


def test_weights_of_other_libraries():
    edges = torch.tensor([[0, 1], [1, 0]])
    for parts in ({"edge_weight": torch.tensor([2.0, 2.0])}, {"edge_attr": torch.tensor([[2], [2]])}):
        assert Graph.from_pyg(Data(x=torch.eye(3), edge_index=edges, **parts)).strengths.tolist() == [2, 2, 0]
    data = Data(x=torch.eye(3), edge_index=edges, edge_attr=torch.ones(2, 4))
    graph, said = notices(lambda: Graph.from_pyg(data))
    assert (graph.is_weighted, said) == (False, ["edge_attr has 4 columns and is dropped: keep one as edge_weight"])
    source = nx.Graph()
    source.add_edge("a", "b", weight=3)
    source.add_edge("b", "c")
    assert Graph.from_networkx(source).strengths.tolist() == [3, 4, 1]
    source.add_edge("a", "c", weight="much")
    with pytest.raises(GraphError, match="'weight' is no number"):
        Graph.from_networkx(source)


def test_a_graph_without_features_gets_structural_ones_and_says_so():
    graph, said = notices(lambda: Graph.from_arrays(edges=BOTH_WAYS, feature_names=["gone"]))
    assert said == ["the graph has no features: log-degree and a random projection of its edges stand in"]
    assert graph.num_nodes == 3
    assert np.allclose(graph.features[:, 0], np.log1p([1, 2, 1]))
    assert graph.feature_names is None


@pytest.mark.parametrize("edges", [np.array(BOTH_WAYS), np.array(BOTH_WAYS).T, np.array(BOTH_WAYS, dtype=np.uint8)])
def test_edges_lie_either_way(edges):
    assert path_graph(edges=edges).num_edges == 2


def test_two_by_two_edges_are_pairs():
    assert path_graph(edges=np.array([[0, 1], [1, 2]])).degrees.tolist() == [1, 2, 1]


# -- small graphs ------------------------------------------------------------------------------------------------


def test_one_node_no_edges():
    graph = Graph.from_arrays(features=[[1.0]], edges=[])
    assert (graph.num_nodes, graph.num_edges, graph.num_classes) == (1, 0, 0)
    assert np.isnan(graph.homophily())


def test_isolated_nodes_and_missing_labels():
    graph = Graph.from_arrays(features=np.eye(4), edges=np.empty((0, 2)), labels=[np.nan] * 4)
    assert graph.degrees.tolist() == [0] * 4
    assert not graph.labelled.any()


@pytest.mark.parametrize("labels", [[3, -5, 0], [3.0, np.nan, 0.0], np.array([3, -1, 0], dtype=np.int8)])
def test_unknown_labels_are_minus_one(labels):
    graph = path_graph(labels=labels)
    assert graph.labels.tolist() == [3, -1, 0]
    assert graph.num_classes == 4


@pytest.mark.parametrize(
    ("values", "labels", "names"),
    [
        ([2.0, float("nan"), 1.0], [1, -1, 0], ("1", "2")),
        (["b", 3, ""], [1, 0, -1], ("3", "b")),
        ([None, None], [-1, -1], ()),
        ([True, False], [1, 0], ("False", "True")),
    ],
)
def test_label_values_of_any_kind_are_numbered(values, labels, names):
    found, classes = encode_labels(values)
    assert found.tolist() == labels
    assert classes == names


# -- what is refused ---------------------------------------------------------------------------------------------

REFUSED = {
    "edge too high": ({"edges": [(0, 1), (1, 3)]}, r"edge 1 \(1, 3\) points outside the nodes 0 … 2"),
    "edge too low": ({"edges": [(-1, 0)]}, "edge 0"),
    "edge not whole": ({"edges": [(0.5, 1)]}, "whole node indices"),
    "edge NaN": ({"edges": [(np.nan, 1)]}, "whole node indices"),
    "edges in threes": ({"edges": [(0, 1, 2)]}, "shape"),
    "edges ragged": ({"edges": [(0, 1), (1,)]}, "different lengths"),
    "edges of names": ({"edges": [("a", "b")]}, "whole node indices"),
    "edges twice": ({"adjacency": np.zeros((3, 3))}, "give the edges once"),
    "no edges at all": ({"edges": None}, "give the edges once"),
    "adjacency shape": ({"edges": None, "adjacency": np.zeros((2, 2))}, "shape"),
    "adjacency NaN": ({"edges": None, "adjacency": np.full((3, 3), np.nan)}, "NaN"),
    "adjacency text": ({"edges": None, "adjacency": np.full((3, 3), "x")}, "numbers"),
    "feature NaN": ({"features": np.array([[0.0], [np.nan], [1]])}, "row 1"),
    "feature infinite": ({"features": np.array([[0.0], [1], [-np.inf]])}, "row 2"),
    "feature beyond float32": ({"features": np.array([[1e300], [1], [0]])}, "row 0"),
    "sparse feature NaN": ({"features": sp.csr_array(np.array([[0.0], [0], [np.nan]]))}, "row 2"),
    "feature text": ({"features": [["a"], ["b"], ["c"]]}, "0/1 columns"),
    "feature complex": ({"features": np.eye(3) * 1j}, "numbers"),
    "features ragged": ({"features": [[1], [1, 2], [3]]}, "different lengths"),
    "features flat": ({"features": [1.0, 2.0, 3.0]}, "matrix"),
    "a single number": ({"features": 1.0}, "empty"),
    "no feature columns": ({"features": np.empty((3, 0))}, "at least one node and one feature"),
    "no nodes": ({"features": np.empty((0, 2)), "edges": [], "labels": None}, "empty"),
    "negative count": ({"num_nodes": -1}, "empty"),
    "count and features differ": ({"num_nodes": 4}, "3 nodes"),
    "short labels": ({"labels": [0, 1]}, "labels has shape"),
    "label text": ({"labels": ["a", "b", "c"]}, "encode_labels"),
    "label fraction": ({"labels": [0.5, 1, 2]}, "whole"),
    "label infinite": ({"labels": [-np.inf, 1, 2]}, "whole"),
    "label huge": ({"labels": [1e300, 1, 2]}, "too large"),
    "label wraps": ({"labels": np.array([2**64 - 1, 1, 2], dtype=np.uint64)}, "too large"),
    "class without name": ({"class_names": ["only"]}, "1 class names"),
    "short ids": ({"node_ids": ["a"]}, "node_ids"),
    "short mask": ({"masks": {"train": [True]}}, "mask 'train'"),
    "mask of numbers": ({"masks": {"train": [0, 1, 1]}}, "expected bool"),
    "short column": ({"columns": {"year": [1999]}}, "column 'year'"),
    "feature names": ({"feature_names": ["x"]}, "1 names for 3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_reason(case):
    changes, reason = REFUSED[case]
    with pytest.raises(GraphError, match=reason) as caught:
        path_graph(**changes)
    assert "\n" not in str(caught.value)


def test_an_empty_edge_list_alone_is_an_empty_graph():
    with pytest.raises(GraphError, match="empty"):
        Graph.from_arrays(edges=[])


@pytest.mark.parametrize(
    ("adjacency", "reason"),
    [
        (np.zeros((2, 2)), "csr_array"),
        (sp.csr_array(np.array([[0, 1], [0, 0]])), "not symmetric"),
        (sp.csr_array(np.array([[1, 0], [0, 0]])), "self-loops"),
        (sp.csr_array(np.array([[0, -2], [-2, 0]])), "positive number"),
        (sp.csr_array(np.array([[0, 2], [3, 0]])), "other weights"),
        (sp.csr_array((3, 3)), "shape"),
        (sp.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2)), "duplicate"),
        (sp.csr_array((np.ones(2), np.array([1, 99]), np.array([0, 1, 2])), shape=(2, 2)), "not a valid CSR"),
        (sp.csr_array((np.ones(2), np.array([1, -1]), np.array([0, 1, 2])), shape=(2, 2)), "not a valid CSR"),
    ],
)
def test_the_class_itself_repairs_nothing(adjacency, reason):
    with pytest.raises(GraphError, match=reason):
        Graph(features=np.eye(2), adjacency=adjacency, labels=np.array([-1, -1]), node_ids=np.arange(2))


@pytest.mark.parametrize(
    ("labels", "reason"), [([0.0, 1.0], "whole numbers"), ([0, -2], "node 1 has -2"), ([0, 2_000_000], "too large")]
)
def test_the_class_itself_repairs_no_labels(labels, reason):
    with pytest.raises(GraphError, match=reason):
        Graph(features=np.eye(2), adjacency=sp.csr_array((2, 2)), labels=np.array(labels), node_ids=np.arange(2))


@pytest.mark.parametrize(
    "changes",
    [
        {"features": np.eye(4)},
        {"features": sp.csr_array(np.eye(4))},
        {"features": np.full((3, 3), np.nan)},
        {"features": np.ones((3, 2))},
        {"labels": np.array([0, 1])},
        {"class_names": ("one",)},
        {"feature_names": ("one",)},
        {"adjacency": sp.csr_array((4, 4))},
        {"masks": {"train": np.ones(4, dtype=bool)}},
        {"columns": {"year": np.ones(4)}},
        {"node_ids": np.arange(4)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_replaced_parts_are_checked(changes):
    graph = path_graph(feature_names=["x", "y", "z"], class_names=["r", "b"])
    with pytest.raises(GraphError):
        graph.replace(**changes)


def test_replaced_parts_leave_the_old_graph_alone():
    graph = path_graph()
    other = graph.replace(labels=np.array([1, 1, 1]), features=np.zeros((3, 7)))
    assert other.num_features == 7
    assert graph.labels.tolist() == [0, 1, -1]
    assert graph.num_features == 3
    assert not other.labels.flags.writeable
    with pytest.raises(TypeError):
        graph.replace(colour="red")


def test_a_damaged_matrix_never_reaches_compiled_code():
    damaged = sp.csr_array((np.ones(2), np.array([0, 10**6]), np.array([0, 1, 2])), shape=(2, 2))
    with pytest.raises(GraphError, match="not a valid CSR"):
        Graph.from_arrays(features=damaged, edges=[])
    with pytest.raises(GraphError, match="not a valid CSR"):
        Graph.from_arrays(features=np.eye(2), adjacency=damaged)


anything = st.one_of(
    st.none(),
    st.integers(-3, 5),
    st.text(max_size=3),
    st.lists(st.one_of(st.integers(-3, 9), st.floats(), st.text(max_size=2), st.none()), max_size=5),
    arrays.arrays(
        st.sampled_from([np.float64, np.float32, np.int64, np.uint64, np.int8, np.bool_, np.complex128]),
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
    ),
    arrays.arrays(np.int64, st.tuples(st.integers(0, 6), st.just(2)), elements=st.integers(-1, 6)),
)


@given(features=anything, edges=anything, labels=anything, ids=anything, mask=anything)
def test_any_input_gives_a_sound_graph_or_a_graph_error(features, edges, labels, ids, mask):
    try:
        graph = Graph.from_arrays(features=features, edges=edges, labels=labels, node_ids=ids, masks={"train": mask})
    except GraphError:
        return
    assert np.isfinite(graph.features).all()
    assert (graph.adjacency != graph.adjacency.T).nnz == 0
    assert graph.labels.min() >= -1
    if edges is not None and np.size(edges):
        assert np.max(edges) < graph.num_nodes


@given(pairs=arrays.arrays(np.int64, st.tuples(st.integers(0, 30), st.just(2)), elements=st.integers(0, 7)))
def test_the_adjacency_is_the_set_of_pairs(pairs):
    graph = Graph.from_arrays(features=np.ones((8, 1)), edges=pairs)
    expected = {(u, v) for u, v in pairs.tolist() if u != v}
    expected |= {(v, u) for u, v in expected}
    assert set(zip(*(part.tolist() for part in graph.adjacency.nonzero()), strict=True)) == expected


# -- parts of a graph --------------------------------------------------------------------------------------------


def test_a_subgraph_keeps_the_order_asked_for(small_graph):
    order = np.random.default_rng(1).permutation(small_graph.num_nodes)[:50]
    part = small_graph.subgraph(order)
    assert np.array_equal(part.node_ids, small_graph.node_ids[order])
    assert np.array_equal(part.features, small_graph.features[order])
    assert np.array_equal(part.adjacency.toarray(), small_graph.adjacency.toarray()[np.ix_(order, order)])


def test_a_subgraph_by_mask_carries_masks_and_columns():
    graph = path_graph(masks={"train": [True, False, True]}, columns={"year": [1, 2, 3]})
    part = graph.subgraph(np.array([True, False, True]))
    assert part.masks["train"].tolist() == [True, True]
    assert part.columns["year"].tolist() == [1, 3]
    assert part.num_edges == 0


@pytest.mark.parametrize("nodes", [[], [True], [0.0, 1.0], [3], [-1], [[0, 1]]])
def test_a_subgraph_of_nothing_or_of_strangers_is_refused(nodes):
    with pytest.raises(GraphError):
        path_graph().subgraph(nodes)


def test_homophily():
    graph = path_graph(labels=[0, 0, 1])
    assert graph.homophily() == 0.5
    assert graph.homophily(np.array([True, True, False])) == 1.0


# -- other libraries' graphs -------------------------------------------------------------------------------------


def test_from_pyg():
    data = Data(x=torch.eye(3), edge_index=torch.tensor(BOTH_WAYS).T, y=torch.tensor([[0], [1], [2]]))
    data.train_mask = torch.tensor([True, False, False])
    graph = as_graph(data)
    assert graph.labels.tolist() == [0, 1, 2]
    assert graph.masks["train"].tolist() == [True, False, False]
    assert as_graph(graph) is graph


def test_from_pyg_with_two_edges():
    graph = Graph.from_pyg(Data(x=torch.eye(3), edge_index=torch.tensor([[0, 0], [1, 2]])))
    assert graph.degrees.tolist() == [2, 1, 1]


@pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr"])
def test_from_pyg_sparse_features(layout):
    graph = Graph.from_pyg(Data(x=getattr(torch.eye(3), layout)(), edge_index=torch.empty((2, 0), dtype=torch.long)))
    assert graph.features.toarray().tolist() == np.eye(3).tolist()


def test_from_pyg_with_several_splits_says_that_none_is_taken():
    data = Data(x=torch.eye(3), edge_index=torch.tensor(BOTH_WAYS).T, train_mask=torch.ones(3, 10, dtype=torch.bool))
    graph, said = notices(lambda: Graph.from_pyg(data))
    assert not graph.masks
    assert len(said) == 1
    assert "several splits" in said[0]


def test_from_pyg_without_edges_is_refused():
    with pytest.raises(GraphError, match="edge_index"):
        Graph.from_pyg(Data(x=torch.eye(3)))


def test_as_graph_refuses_strangers():
    with pytest.raises(GraphError, match="make one with Graph"):
        as_graph([1, 2])


def test_from_networkx():
    source = nx.Graph()
    for name, label in (("b", "red"), ("a", "blue"), ((0, 1), None)):
        source.add_node(name, x=float(len(str(name))), label=label)
    source.add_edge("a", "b", weight=3)
    graph, said = notices(lambda: Graph.from_networkx(source, feature_attributes=["x"], label_attribute="label"))
    assert said == []
    assert list(graph.node_ids) == ["b", "a", (0, 1)]
    assert graph.labels.tolist() == [1, 0, -1]
    assert graph.class_names == ("blue", "red")
    assert graph.features[:, 0].tolist() == [1, 1, 6]
    assert graph.num_edges == 1


def test_from_networkx_directed_is_symmetrised_with_a_notice():
    graph, said = notices(lambda: Graph.from_networkx(nx.DiGraph([(0, 1)])))
    assert graph.num_edges == 1
    assert said[0] == "1 edges given in one direction only taken as undirected: direction is dropped"


@pytest.mark.parametrize("value", ["red", None, [1.0]])
def test_from_networkx_refuses_what_is_no_number(value):
    source = nx.path_graph(2)
    source.nodes[1]["x"] = value
    source.nodes[0]["x"] = 1.0
    with pytest.raises(GraphError, match="node 1: attribute 'x'"):
        Graph.from_networkx(source, feature_attributes=["x"])


def test_attributes_of_networkx_become_features_or_are_named():
    source = nx.path_graph(2)
    for node in source:
        source.nodes[node].update(age=30 + node, place=(0.5, node), name=f"n{node}", label=node)
    source.nodes[0]["rare"] = 1
    graph, said = notices(lambda: Graph.from_networkx(source, label_attribute="label"))
    assert graph.feature_names == ("age", "place[0]", "place[1]")
    assert graph.features.tolist() == [[30, 0.5, 0], [31, 0.5, 1]]
    assert said == ["attributes that are not a number or a vector on every node are no features: 'name', 'rare'"]


def test_from_networkx_refuses_an_empty_graph():
    with pytest.raises(GraphError, match="empty"):
        Graph.from_networkx(nx.Graph())


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"features": np.ma.masked_array(np.eye(2), mask=np.eye(2))}, "masked"),
        ({"features": np.eye(2, dtype=complex)}, "must be numbers"),
        ({"num_nodes": 2.0}, "num_nodes must be a whole number"),
        ({"features": None, "num_nodes": 10**12}, "do not fit"),
        ({"feature_names": "ab"}, "feature_names must be a list"),
        ({"feature_names": 3}, "feature_names must be a list"),
        ({"masks": [1]}, "masks must be a dict"),
        ({"node_ids": ["a", "\udc80"]}, "no text that a file can hold"),
        ({"class_names": ["a", "\udc80"]}, "no text that a file can hold"),
    ],
)
def test_odd_parts(parts, reason):
    with pytest.raises(GraphError, match=reason):
        Graph.from_arrays(**{"features": np.eye(2), "edges": [(0, 1)], **parts})


def test_one_class_has_one_name():
    labels, names = encode_labels([1, 1.0, None, float("nan"), 2])
    assert (labels.tolist(), names) == ([0, 0, -1, -1, 1], ("1", "2"))
    with pytest.raises(GraphError, match="of one name"):
        encode_labels([1, "1"])
    for collection in ([1], {"a": 1}, np.zeros(2)):
        with pytest.raises(GraphError, match="a collection"):
            encode_labels([collection])


def test_an_edge_index_lies(recwarn):
    with pytest.raises(GraphError, match=r"edge_index must have shape \(2, m\)"):
        Graph.from_pyg(Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2], [0, 2]])))


@pytest.mark.parametrize("value", [10**400, float("nan"), "x", None, [[1]], [], [1, "x"]])
def test_attributes_that_are_no_numbers(value):
    graph = nx.Graph()
    graph.add_node("a", x=value)
    with pytest.raises(GraphError, match="expected a number"):
        Graph.from_networkx(graph, feature_attributes=["x"])


def test_a_notice_has_no_control_characters():
    with pytest.warns(GraphNotice) as caught:
        notice("two\nlines \x1b[2J")
    assert str(caught[0].message) == "two lines \\x1b[2J"


def test_columns_that_no_model_could_have_are_refused():
    wide = sp.csr_array(([1.0], [0], [0, 1, 1]), shape=(2, 10**12))
    with pytest.raises(GraphError, match="a model of 1,000,000,000,000 columns"):
        Graph.from_arrays(features=wide, edges=[(0, 1)])
