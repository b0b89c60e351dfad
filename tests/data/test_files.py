import re
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from degem import Graph, read_graph
from degem.data import columns
from degem.data.archives import write_npz
from degem.errors import GraphError, GraphNotice
from degem.schema import TableSchema

RAW = TableSchema()  # columns as they are
NODES = "id,label,x,y\nann,red,0.5,1\nbob,,1.5,2\ncid,blue,-3e2,3\n"
EDGES = "source,target\nann,bob\nbob,ann\ncid,ann\nann,cid\n"


@pytest.fixture
def write(tmp_path):
    """Write a folder of tables; text becomes CSV, a data frame Parquet."""

    def _write(nodes=NODES, edges=EDGES):
        for name, content in (("nodes", nodes), ("edges", edges)):
            if isinstance(content, pd.DataFrame):
                content.to_parquet(tmp_path / f"{name}.parquet")
            elif content is not None:
                content = content if isinstance(content, bytes) else content.encode()
                (tmp_path / f"{name}.csv").write_bytes(content)
        return tmp_path

    return _write


def refused(path, *parts, **choices):
    with pytest.raises(GraphError) as caught:
        read_graph(path, **choices)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message
    return message


# -- folders that are read ---------------------------------------------------------------------------------------


def test_a_folder_of_csv(write):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = read_graph(write(), schema=RAW)
    assert graph.node_ids.tolist() == ["ann", "bob", "cid"]
    assert graph.class_names == ("blue", "red")
    assert graph.labels.tolist() == [1, -1, 0]
    assert graph.feature_names == ("x", "y")
    assert graph.features.tolist() == [[0.5, 1], [1.5, 2], [-300, 3]]
    assert graph.adjacency.toarray().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]


def test_a_folder_of_parquet(write):
    nodes = pd.DataFrame(
        {"id": [7, 3], "x": [True, False], "y": np.float32([1, 2]), "label": pd.Categorical(["b", "a"])}
    )
    graph = read_graph(write(nodes, pd.DataFrame({"a": ["7"], "b": ["3"]})), schema=RAW)
    assert graph.node_ids.tolist() == [7, 3]
    assert graph.features.tolist() == [[1, 1], [0, 2]]
    assert graph.class_names == ("a", "b")
    assert graph.labels.tolist() == [1, 0]
    assert graph.num_edges == 1


def test_columns_are_chosen_by_name(write):
    graph = read_graph(
        write("x,colour,key,class,y\n1,red,a,0,5\n2,blue,b,2,6\n", "from,to\na,b\n"),
        id_column="key",
        label_column="class",
        feature_columns=["y", "x"],
        keep_columns=["colour"],
        schema=RAW,
    )
    assert graph.features.tolist() == [[5, 1], [6, 2]]
    assert graph.feature_names == ("y", "x")
    assert graph.labels.tolist() == [0, 2]
    assert graph.class_names is None
    assert graph.columns["colour"].tolist() == ["red", "blue"]


def test_masks_have_their_names(write):
    graph = read_graph(write("id,x,train_mask,val_mask\n1,1,True,0\n2,2,false,1\n", "a,b\n"), schema=RAW)
    assert graph.masks["train"].tolist() == [True, False]
    assert graph.masks["val"].tolist() == [False, True]
    assert graph.feature_names == ("x",)


def test_a_file_of_ids_alone_gets_structural_features(write):
    with pytest.warns(GraphNotice, match="no features"):
        graph = read_graph(write("id\n1\n2\n", "a,b\n1,2\n"))
    assert graph.node_ids.tolist() == [1, 2]


@pytest.mark.parametrize("edges", ["source,target\n", "source,target", "source,target\n\n"])
def test_no_edges(write, edges):
    assert read_graph(write(edges=edges)).num_edges == 0


def test_further_edge_columns_get_a_notice(write):
    with pytest.warns(GraphNotice, match="kind not used"):
        read_graph(write(edges="source,target,kind\nann,bob,3\nbob,ann,3\n"))


def test_weights_of_edges(write):
    path = write(edges="source,target,weight\nann,bob,2.5\nbob,ann,2.5\nann,cid,1\ncid,ann,1\n")
    assert read_graph(path).strengths.tolist() == [3.5, 2.5, 1]
    with pytest.warns(GraphNotice, match="weight not used"):
        assert not read_graph(path, ignore_weights=True).is_weighted
    for weight, fault in (("", "no value"), ("-1", "-1.0"), ("much", "not a number")):
        path = write(edges=f"source,target,weight\nann,bob,2.5\nbob,ann,{weight}\n")
        refused(path, "edges.csv", "column 'weight', row 2", fault)


def test_weights_in_archives(tmp_path):
    np.savez(tmp_path / "graph.npz", **EYE, edge_weights=np.array([2.0, 2.0]))
    graph = read_graph(tmp_path / "graph.npz")
    assert graph.strengths.tolist() == [2, 2, 0]
    write_npz(graph, tmp_path / "again.npz")
    assert read_graph(tmp_path / "again.npz").strengths.tolist() == [2, 2, 0]
    assert not read_graph(tmp_path / "again.npz", ignore_weights=True).is_weighted


@pytest.mark.parametrize(
    ("ids", "expected"),
    [(["1", "2"], [1, 2]), (["007", "7"], ["007", "7"]), (["1", "b"], ["1", "b"]), (["1.0", "1"], ["1.0", "1"])],
)
def test_ids_lose_nothing(write, ids, expected):
    graph = read_graph(write(f"id,x\n{ids[0]},1\n{ids[1]},2\n", f"a,b\n{ids[1]},{ids[0]}\n"))
    assert graph.node_ids.tolist() == expected
    assert graph.num_edges == 1


@pytest.mark.parametrize(
    ("values", "expected", "classes"),
    [
        (["0", "2"], [0, 2], None),
        (["1.0", ""], [1, -1], None),
        (["-1", "1"], [-1, 1], None),
        (["nan", "1"], [-1, 1], None),
        (["", ""], [-1, -1], None),
        (["b", "a"], [1, 0], ("a", "b")),
        (["b", ""], [0, -1], ("b",)),
        (["1", "x"], [0, 1], ("1", "x")),
        (["0x10", "0x2"], [0, 1], ("0x10", "0x2")),
        (["01", "1"], [0, 1], ("01", "1")),
    ],
)
def test_labels_are_numbers_or_names(write, values, expected, classes):
    graph = read_graph(write(f"id,label,x\na,{values[0]},1\nb,{values[1]},2\n", "s,t\n"))
    assert graph.labels.tolist() == expected
    assert (graph.class_names or None) == classes


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1999", "2000"], [1999, 2000]),
        (["1.5", "2"], [1.5, 2]),
        (["a", ""], ["a", ""]),
        (["00501", "10001"], ["00501", "10001"]),
        (["0x10", "16"], ["0x10", "16"]),
    ],
)
def test_kept_columns_are_numbers_or_text(write, values, expected):
    graph = read_graph(write(f"id,x,k\na,1,{values[0]}\nb,2,{values[1]}\n", "s,t\n"), keep_columns=["k"])
    assert graph.columns["k"].tolist() == expected


def test_a_byte_order_mark_and_crlf(write):
    graph = read_graph(write(b"\xef\xbb\xbf" + NODES.replace("\n", "\r\n").encode()))
    assert graph.node_ids.tolist() == ["ann", "bob", "cid"]


def test_whole_numbers_turn_into_fractions_late_in_a_file(write):
    rows = "".join(f"{row},{0 if row < 199_999 else 0.5}\n" for row in range(200_000))
    assert read_graph(write("id,x\n" + rows, "s,t\n"), schema=RAW).features[-1, 0] == 0.5


# -- folders that are refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["nodes", "edges"])
def test_a_missing_table(write, missing):
    refused(write(**{missing: None}), f"no {missing}.csv or {missing}.parquet")


def test_both_kinds_of_table(write):
    write()
    refused(write(pd.DataFrame({"id": [1]}), None), "both nodes.csv and nodes.parquet")


BAD_NODES = {
    "nothing at all": ("", ["nodes.csv", "empty"]),
    "a mark alone": (b"\xef\xbb\xbf", ["nodes.csv", "empty"]),
    "a mark and a line": (b"\xef\xbb\xbf\nid,x\n", ["nodes.csv", "empty"]),
    "colours of a terminal": ("id,x\na,1\nb,1\nc,\x1b[31m\n", ["'\\x1b[31m' is not a number"]),
    "a header alone": ("id,x\n", ["nodes.csv", "no rows"]),
    "a word among numbers": ("id,x\na,1\nb,red\nc,2\n", ["column 'x', row 2", "'red' is not a number", "--columns"]),
    "a word among dates": ("id,x\na,2024-01-31\nb,2024-02-31\nc,2024-03-31\n", ["column 'x', row 2", "no date"]),
    "an infinity": ("id,x,y\na,1,1\nb,1,-inf\n", ["column 'y', row 2", "-inf"]),
    "a longer row": ("id,x\na,1\nb,2,3\n", ["row 2", "3 values for 2 columns"]),
    "a shorter row": ("id,x\na,1\nb\n", ["row 2", "1 values for 2 columns"]),
    "an open quote": ('id,x\n"a,1\nb,2\n', ["row 1"]),
    "a twin id": ("id,x\na,1\nb,1\na,1\n", ["column 'id', row 3", "'a'", "row 1 already"]),
    "no id": ("id,x\na,1\n,1\n", ["column 'id', row 2", "missing"]),
    "a nameless column": (",x\n0,1\n", ["column 1 has no name", "index=False"]),
    "a twin column": ("id,x,x\na,1,2\n", ["two columns are called 'x'"]),
    "not UTF-8 in a row": (b"id,x\na,1\n\xff\xfe,1\n", ["column 'id', row 2", "UTF-8"]),
    "not UTF-8 in the header": (b"id,\xff\na,1\n", ["byte 3", "UTF-8"]),
    "UTF-16": ("id,x\na,1\n".encode("utf-16"), ["UTF-8"]),
    "semicolons in one row": ("id,x\na;1,5,7\n", ["row 1", "commas"]),
    "old line ends": (b"id,x\ra,1\r", ["first line"]),
    "half a class": ("id,label,x\na,0.5,1\n", ["nodes.csv: column 'label'", "whole numbers"]),
    "a huge class": ("id,label,x\na,1e300,1\n", ["nodes.csv: column 'label'", "too large"]),
    "half a mask": ("id,x,train_mask\na,1,True\nb,1,maybe\n", ["column 'train_mask', row 2", "'maybe'"]),
}


@pytest.mark.parametrize("case", BAD_NODES)
def test_bad_nodes(write, case):
    content, parts = BAD_NODES[case]
    refused(write(content, "s,t\n"), "nodes.csv", *parts)


BAD_EDGES = {
    "a stranger": (
        "s,t\nann,bob\nann,eve\n",
        ["column 't', row 2", "'eve'", "1 ids that nodes.csv lacks", "--unknown-ids"],
    ),
    "a missing end": ("s,t\nann,\n", ["column 't', row 1", "missing"]),
    "one column": ("s\nann\n", ["one column, 's'"]),
    "nothing at all": ("", ["empty"]),
    "numbers among names": ("s,t\n1,2\n", ["column 's', row 1", "'1'"]),
    "not UTF-8": (b"s,t\nann,\xff\n", ["column 't', row 1", "UTF-8"]),
}


@pytest.mark.parametrize("case", BAD_EDGES)
def test_bad_edges(write, case):
    content, parts = BAD_EDGES[case]
    refused(write(edges=content), "edges.csv", *parts)


def test_bad_parquet(write, tmp_path):
    edges = pd.DataFrame({"s": [1], "t": [1]})
    refused(write(pd.DataFrame({"id": [1], "c": [[1.0, 2.0]]}), edges), "column 'c' holds list")
    refused(write(pd.DataFrame({"id": [1.0], "x": [1]}), edges), "column 'id' holds double")
    missing = write(pd.DataFrame({"id": [1, 2], "x": [1, None]}), edges)
    refused(missing, "column 'x', row 2", "no value", schema=RAW)
    refused(write(pd.DataFrame({"id": [1], "x": [1]}, index=["odd"]), edges), "column 3 has no name")
    whole = (tmp_path / "nodes.parquet").read_bytes()
    for damaged in (whole[:50], whole[:-20], b"", b"PAR1" * 20):
        (tmp_path / "nodes.parquet").write_bytes(damaged)
        refused(tmp_path, "nodes.parquet cannot be read")


def test_parquet_cells_that_are_collections(write):
    edges = pd.DataFrame({"s": [1], "t": [1]})
    for label in ([[1.0, 2.0]], [b"\xff"], [{"a": 1}]):
        refused(write(pd.DataFrame({"id": [1], "label": label, "x": [1]}), edges), "column 'label' holds", "one text")


def test_what_parquet_unpacks_to_is_known_before(write, monkeypatch):
    monkeypatch.setenv("DEGEM_MAX_READ_MIB", "16")
    edges = pd.DataFrame({"s": [1], "t": [1]})
    path = write(pd.DataFrame({"id": np.arange(10**6), "x": np.zeros(10**6)}), edges)
    assert (path / "nodes.parquet").stat().st_size < 8 << 20
    refused(path, "1,000,000 rows, too many")
    refused(
        write(pd.DataFrame({"id": range(100), "label": ["x" * 10**6] * 100, "x": 1}), edges), "'label' is too large"
    )


def test_a_table_larger_than_the_limit_is_not_read(write, monkeypatch):
    monkeypatch.setenv("DEGEM_MAX_READ_MIB", "1")
    refused(write("id,x\n" + "1,1\n" * 100_000), "400,005 bytes, too many")


def test_messages_quote_little(write):
    message = refused(write("id,x\na,1\nb,1\nc," + "y" * 300_000 + "\n", "s,t\n"), "is not a number")
    assert len(message) < 600


@pytest.mark.parametrize(
    ("choices", "parts"),
    [
        ({"id_column": "name"}, ["no column 'name' (--id-column)", "it has id, label, x, y"]),
        ({"label_column": "z"}, ["no column 'z'"]),
        ({"feature_columns": ["x", "z"]}, ["no column 'z'"]),
        ({"keep_columns": ["z"]}, ["no column 'z'"]),
        ({"feature_columns": ["x"], "keep_columns": ["x"]}, ["'x' is asked for twice"]),
        ({"id_column": "x", "label_column": "x"}, ["'x' is asked for twice"]),
        ({"feature_columns": ["id", "label", "x", "y"]}, ["first column, 'id'", "id_column"]),
        ({"columns": {"z": "number"}}, ["no column 'z' (--columns)"]),
        ({"columns": {"x": "numbers"}}, ["'numbers' of 'x' is none of number, skewed"]),
        ({"keep_columns": ["z"], "label_column": "w"}, ["'z' (--keep-columns)", "'w' (--label-column)"]),
    ],
)
def test_columns_that_cannot_be(write, choices, parts):
    refused(write(), "nodes.csv", *parts, **choices)


def test_ten_million_columns_in_a_header(write):
    path = write(b"id," + b"x," * 10_000_000 + b"y\n1,2\n")
    tracemalloc.start()
    refused(path, "100,000 columns", ".npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20
    refused(write(b"x" * (17 << 20)), "first line is longer")


def test_a_wide_parquet_table(write, monkeypatch):
    monkeypatch.setattr(columns, "MAX_COLUMNS", 2)
    path = write(pd.DataFrame({"id": [1], "x": [1], "y": [2]}), pd.DataFrame({"s": [1], "t": [1]}))
    refused(path, "nodes.parquet names more than 2 columns", ".npz")


def test_a_path_that_is_no_graph(tmp_path):
    refused(tmp_path / "gone", "does not exist")
    (tmp_path / "graph.txt").write_text("x")
    refused(tmp_path / "graph.txt", "is no graph")


@given(nodes=st.binary(max_size=60), edges=st.binary(max_size=40))
def test_any_bytes_give_a_graph_or_a_graph_error(tmp_path_factory, nodes, edges):
    folder = tmp_path_factory.mktemp("graph")
    (folder / "nodes.csv").write_bytes(b"id,x\n" + nodes)
    (folder / "edges.csv").write_bytes(b"s,t\n" + edges)
    try:
        graph = read_graph(folder)
    except GraphError:
        return
    assert np.isfinite(graph.features).all()
    assert np.array_equal(read_graph(folder, schema=graph.schema).features, graph.features)


words = st.text(st.sampled_from("ab1 ,\"'.é€\t"), min_size=1, max_size=4).filter(lambda text: text.strip() == text)


@settings(max_examples=40)
@given(
    data=st.data(), ids=st.lists(words, min_size=1, max_size=6, unique=True), suffix=st.sampled_from(["csv", "parquet"])
)
def test_what_pandas_writes_comes_back(tmp_path_factory, data, ids, suffix):
    folder = tmp_path_factory.mktemp("graph")
    values = data.draw(st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=len(ids), max_size=len(ids)))
    ends = data.draw(st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=8))
    tables = {
        "nodes": pd.DataFrame({"id": ids, "x": values}),
        "edges": pd.DataFrame(ends, columns=["s", "t"], dtype=str),
    }
    for name, table in tables.items():
        path = folder / f"{name}.{suffix}"
        _ = table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path, index=False)
    graph = read_graph(folder, schema=RAW)
    assert [str(value) for value in graph.node_ids] == ids
    assert np.array_equal(graph.features[:, 0], np.float32(values))
    names = {frozenset(pair) for pair in ends if pair[0] != pair[1]}
    found = {frozenset((ids[u], ids[v])) for u, v in zip(*graph.adjacency.nonzero(), strict=True)}
    assert found == names


# -- archives ----------------------------------------------------------------------------------------------------


def full_graph(sparse):
    features = np.array([[0, 1.5], [2, 0], [0, 0]], dtype=np.float32)
    return Graph.from_arrays(
        features=sp.csr_array(features) if sparse else features,
        edges=[(0, 1), (1, 0)],
        labels=[1, 0, -1],
        node_ids=["a", "b", "c"],
        feature_names=["x", "y"],
        class_names=["red", "blue"],
        masks={"train": [True, False, False]},
        columns={"year": [1, 2, 3], "colour": np.array(["r", "g", "b"], dtype=object)},
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_an_archive_comes_back_whole(tmp_path, sparse):
    graph = full_graph(sparse)
    write_npz(graph, tmp_path / "graph.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = read_graph(tmp_path / "graph.npz")
    assert sp.issparse(back.features) == sparse
    assert abs(back.features - graph.features).max() == 0
    assert (back.adjacency != graph.adjacency).nnz == 0
    for name in ("labels", "node_ids"):
        assert getattr(back, name).tolist() == getattr(graph, name).tolist()
    assert (back.feature_names, back.class_names) == (graph.feature_names, graph.class_names)
    assert back.masks["train"].tolist() == [True, False, False]
    assert back.columns["year"].tolist() == [1, 2, 3]
    assert back.columns["colour"].tolist() == ["r", "g", "b"]
    assert [path.name for path in tmp_path.iterdir()] == ["graph.npz"]


def test_a_crash_while_writing_leaves_the_old_archive(tmp_path, monkeypatch):
    path = tmp_path / "graph.npz"
    write_npz(full_graph(False), path)
    before = path.read_bytes()

    def half(file, **_):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(KeyboardInterrupt):
        write_npz(full_graph(True), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["graph.npz"]


EYE = {"features": np.eye(3), "edges": np.array([[0, 1], [1, 0]])}
CSR = {
    "edges": EYE["edges"],
    "features_data": np.ones(2),
    "features_indices": np.array([0, 1]),
    "features_indptr": np.array([0, 1, 2]),
    "features_shape": np.array([2, 2]),
}
BAD_ARCHIVES = {
    "no edges": ({"features": np.eye(2)}, "no array 'edges'"),
    "an unknown array": ({**EYE, "weights": np.ones(3)}, "'weights'"),
    "a pickle": ({**EYE, "labels": np.array([0, "a", None], dtype=object)}, "plain arrays"),
    "edges lying": ({**EYE, "edges": np.zeros((2, 3), dtype=int)}, r"shape \(m, 2\)"),
    "edges outside": ({**EYE, "edges": np.array([[0, 3]])}, "edge 0"),
    "short labels": ({**EYE, "labels": np.zeros(2, dtype=int)}, "labels has shape"),
    "short mask": ({**EYE, "mask_train": np.ones(2, dtype=bool)}, "mask 'train'"),
    "short column": ({**EYE, "column_year": np.ones(2)}, "column 'year'"),
    "twin ids": ({**EYE, "node_ids": np.array(["a", "b", "a"])}, "node_ids: 'a' of node 0"),
    "NaN": ({**EYE, "features": np.full((3, 1), np.nan)}, "row 0"),
    "names of a matrix": ({**EYE, "feature_names": np.array([["x"]])}, "feature_names"),
    "half a CSR": ({name: CSR[name] for name in list(CSR)[:3]}, "either as 'features' or as all of"),
    "both kinds": ({**CSR, "features": np.eye(2)}, "either as"),
    "CSR outside": ({**CSR, "features_indices": np.array([0, 10**6])}, "CSR"),
    "CSR negative": ({**CSR, "features_indices": np.array([0, -1])}, "CSR"),
    "CSR short": ({**CSR, "features_indptr": np.array([0, 1])}, "CSR"),
    "CSR backwards": ({**CSR, "features_indptr": np.array([0, 2, 1])}, "CSR"),
    "CSR of floats": ({**CSR, "features_indices": np.array([0.5, 1])}, "whole numbers"),
    "CSR shape": ({**CSR, "features_shape": np.array([2, -2])}, "CSR|shape"),
    "CSR shapes": ({**CSR, "features_shape": np.array([2, 2, 2])}, "features_shape"),
    "CSR of text": ({**CSR, "features_data": np.array(["a", "b"])}, "CSR|numbers"),
}


@pytest.mark.parametrize("case", BAD_ARCHIVES)
def test_bad_archives(tmp_path, case):
    arrays, reason = BAD_ARCHIVES[case]
    np.savez(tmp_path / "graph.npz", **arrays)
    with pytest.raises(GraphError, match=reason) as caught:
        read_graph(tmp_path / "graph.npz")
    assert "graph.npz" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_archive_names_its_own_columns(tmp_path):
    np.savez(tmp_path / "graph.npz", **EYE)
    refused(tmp_path / "graph.npz", "folders of tables only", id_column="id")


def test_a_sparse_archive_may_be_a_million_columns_wide(tmp_path):
    np.savez(tmp_path / "graph.npz", **{**CSR, "features_shape": np.array([2, 1_000_000])})
    assert read_graph(tmp_path / "graph.npz").num_features == 1_000_000


@given(data=st.data())
def test_damaged_archives_are_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    np.savez_compressed(path, **EYE)
    whole = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        whole = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        for _ in range(3):
            whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(whole))
    try:
        graph = read_graph(path)
    except GraphError:
        return
    assert np.isfinite(graph.features).all()  # the change hit a byte without meaning


def test_the_documented_example_runs(tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs" / "graph-files.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], names)
    assert repr(names["graph"]) == "Graph(3 nodes, 2 edges, 3 features, 2 classes)"
