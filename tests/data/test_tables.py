"""Tables as people have them: encoded once, applied alike, and edges to ids that nobody knows."""

import warnings

import numpy as np
import pandas as pd
import pytest

from degem import Detector, Graph, read_graph
from degem.data.onto import read_onto
from degem.errors import GraphError, GraphNotice
from degem.schema import TableSchema


def people(seed=0, count=300):
    """A month's table: normal people, no two alike."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": [f"p{row}" for row in range(count)],
            "balance": rng.normal(1000, 300, count).round(2),
            "visits": rng.geometric(0.1, count),
            "joined": pd.Series(pd.date_range("2020-01-01", periods=count)).astype(str),
            "colour": rng.choice(["red", "blue", "green"], count),
            "vip": rng.random(count) < 0.3,
        }
    )


def write(folder, nodes, edges=None, **how):
    folder.mkdir(exist_ok=True)
    ids = nodes["id"].to_numpy()
    ring = pd.DataFrame({"source": ids, "target": np.roll(ids, 1)})
    nodes.to_csv(folder / "nodes.csv", index=False, **how)
    (ring if edges is None else edges).to_csv(folder / "edges.csv", index=False, **how)
    return folder


@pytest.mark.parametrize("how", [{}, {"sep": ";", "decimal": ","}, {"sep": "\t"}], ids=["commas", "semicolons", "tabs"])
def test_separators_are_recognised(tmp_path, how):
    expected = read_graph(write(tmp_path / "plain", people()))
    graph = read_graph(write(tmp_path / "other", people(), **how))
    assert np.array_equal(graph.features, expected.features)
    assert graph.num_edges == 300


def test_tsv_files(tmp_path):
    folder = write(tmp_path / "graph", people(), sep="\t")
    for name in ("nodes", "edges"):
        (folder / f"{name}.csv").rename(folder / f"{name}.tsv")
    assert read_graph(folder).num_nodes == 300


def test_csv_and_parquet_are_encoded_alike(tmp_path):
    folder = write(tmp_path / "graph", people())
    graph = read_graph(folder)
    (folder / "nodes.csv").unlink()
    people().to_parquet(folder / "nodes.parquet")
    assert np.array_equal(read_graph(folder).features, graph.features)
    assert np.array_equal(read_graph(folder, schema=graph.schema).features, graph.features)


def test_a_schema_is_learnt_from_nodes_in_distribution(tmp_path):
    nodes = people().assign(label=["known"] * 150 + [""] * 150, val_mask=[True] * 50 + [False] * 250)
    nodes.loc[150:, "balance"] = 1e6
    nodes.loc[:49, "balance"] = -1e6
    schema = read_graph(write(tmp_path / "graph", nodes)).schema
    assert schema.columns[0].center == pytest.approx(1000, abs=100)


def test_cents_give_the_flags_of_euros(tmp_path):
    found = []
    for name, unit in (("euros", 1), ("cents", 100)):
        nodes = people()
        nodes.loc[280:, "balance"] = 4000  # 20 who have far more
        nodes["balance"] = (nodes["balance"] * unit).round(6)
        graph = read_graph(write(tmp_path / name, nodes, sep="\t"))
        detector = Detector.registry["feature-knn"]().fit(graph.subgraph(np.arange(280)))
        found.append(detector.predict(graph))
    assert np.array_equal(*found)
    assert found[0][280:].all()


@pytest.mark.parametrize("change", [{"colour": "mauve"}, {"balance": np.nan}, {"joined": None, "vip": None}])
def test_what_is_new_at_scoring_is_information(tmp_path, change):
    graph = read_graph(write(tmp_path / "before", people()))
    detector = Detector.registry["feature-knn"]().fit(graph)
    detector.save(tmp_path / "model")
    detector = Detector.load(tmp_path / "model")
    later = people().astype(object)
    later.loc[7, list(change)] = list(change.values())
    grown = read_graph(write(tmp_path / "after", later), schema=detector.schema_)
    scores = detector.decision_function(grown)
    assert scores.argmax() == 7
    assert detector.predict(grown)[7] == 1


def test_a_graph_with_a_schema_of_its_own_is_not_scored(tmp_path):
    detector = Detector.registry["feature-knn"]().fit(read_graph(write(tmp_path / "before", people())))
    other = read_graph(write(tmp_path / "after", people(seed=1)))
    with pytest.raises(GraphError, match=r"schema=detector\.schema_"):
        detector.decision_function(other)
    again = read_graph(tmp_path / "after", schema=detector.schema_)
    assert np.isfinite(detector.decision_function(again)).all()


def test_columns_of_the_model_that_are_gone(tmp_path):
    schema = read_graph(write(tmp_path / "before", people())).schema
    write(tmp_path / "after", people().drop(columns=["balance", "vip"]))
    with pytest.raises(GraphError, match=r"2 faults: no column 'balance' .*no column 'vip' .*it has id, visits"):
        read_graph(tmp_path / "after", schema=schema)
    with pytest.raises(GraphError, match="not those of the model"):
        read_graph(tmp_path / "before", schema=schema, feature_columns=["visits"])


def test_columns_left_out_are_said_and_not_missed_later(tmp_path):
    nodes = people().assign(email=[f"{row}@host" for row in range(300)])
    with pytest.warns(GraphNotice, match="left out: email"):
        schema = read_graph(write(tmp_path / "graph", nodes)).schema
    assert schema.descriptions()["email"] == "left out"
    assert read_graph(write(tmp_path / "later", people()), schema=schema).num_nodes == 300


def test_faults_of_both_tables_are_told_at_once(tmp_path):
    nodes = people().astype(object)
    nodes.loc[3, "balance"], nodes.loc[5, "id"], nodes["train_mask"] = "much", "p4", "perhaps"
    edges = pd.DataFrame({"s": ["p1", ""], "t": ["p2", "p3"]})
    with pytest.raises(GraphError) as caught:
        read_graph(write(tmp_path / "graph", nodes, edges))
    for part in (
        "3 faults",
        "column 'id', row 6: id 'p4' is that of row 5 already",
        "column 'train_mask', row 1: 'perhaps'",
        "column 'balance', row 4: 'much' is not a number",
    ):
        assert part in str(caught.value)
    nodes.loc[5, "id"] = "p5"
    with pytest.raises(GraphError, match=r"2 faults: .*nodes.csv: 2 faults: .*edges.csv: column 's', row 2"):
        read_graph(write(tmp_path / "graph", nodes, edges))


# -- edges to unknown ids -----------------------------------------------------------------------------------------

STRANGE = pd.DataFrame({"s": ["p0", "p1", "zed", "p3"], "t": ["p1", "zed", "yan", "yan"]})


def test_edges_to_unknown_ids_are_an_error(tmp_path):
    message = "3 of 4 edges end at 2 ids that nodes.csv lacks, such as column 't', row 2: 'zed'.*--unknown-ids drop"
    with pytest.raises(GraphError, match=message):
        read_graph(write(tmp_path / "graph", people(), STRANGE))


def test_edges_to_unknown_ids_are_dropped(tmp_path):
    with pytest.warns(GraphNotice, match="3 of 4 edges .*dropped"):
        graph = read_graph(write(tmp_path / "graph", people(), STRANGE), unknown_ids="drop")
    assert (graph.num_nodes, graph.num_edges) == (300, 1)
    assert graph.schema.unknown_ids == "drop"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphNotice)
        assert read_graph(tmp_path / "graph", schema=graph.schema).num_edges == 1  # remembered


def test_unknown_ids_are_added(tmp_path):
    nodes = people().assign(label="known", train_mask=True, year=2020)
    with pytest.warns(GraphNotice, match="2 ids that nodes.csv lacks: added"):
        graph = read_graph(write(tmp_path / "graph", nodes, STRANGE), unknown_ids="add", keep_columns=["year"])
    assert graph.node_ids[-2:].tolist() == ["zed", "yan"]
    assert graph.num_edges == 4
    assert graph.labels[-3:].tolist() == [0, -1, -1]
    assert graph.masks["train"][-3:].tolist() == [True, False, False]
    assert np.isnan(graph.columns["year"][-1])
    assert (graph.features[-1, -1] > 0, graph.features[0, -1]) == (True, 0)  # everything of it is missing
    raw = read_graph(tmp_path / "graph", schema=TableSchema(), unknown_ids="add", feature_columns=["visits"])
    assert raw.features[-1].tolist() == [0]


def test_whole_numbers_beside_unknown_words(tmp_path):
    nodes, edges = people(count=5).assign(id=range(5)), pd.DataFrame({"s": ["0", "x"], "t": ["1", "2"]})
    with pytest.warns(GraphNotice):
        graph = read_graph(write(tmp_path / "graph", nodes, edges), unknown_ids="add", feature_columns=["visits"])
    assert graph.node_ids.tolist() == ["0", "1", "2", "3", "4", "x"]


def test_new_nodes_are_encoded_like_the_graph_they_arrive_in(tmp_path):
    before = read_graph(write(tmp_path / "before", people()))
    new = people(seed=1, count=2).assign(id=["n0", "n1"], colour=["mauve", "red"])
    write(tmp_path / "new", new, pd.DataFrame({"s": ["n0", "n1"], "t": ["p3", "gone"]}))
    with pytest.warns(GraphNotice):
        grown = read_onto(tmp_path / "new", before, unknown_ids="add")
    assert grown.node_ids[-3:].tolist() == ["n0", "n1", "gone"]
    assert grown.schema is before.schema
    assert (grown.features[-3, -1] > 0, grown.features[-2, -1]) == (True, 0)
    assert grown.adjacency[300, 3] == 1


def test_a_graph_of_arrays_has_no_schema():
    assert Graph.from_arrays(features=np.eye(3), edges=[(0, 1)]).schema is None


def test_one_missing_column_is_one_fault_and_faults_of_columns_count_singly(tmp_path) -> None:
    (tmp_path / "nodes.csv").write_text(
        "id,age,joined\na,1,2024-01-01\na,2,2024-01-02\nb,x,2024-01-03\nc,4,soon\n"
        + "".join(f"n{i},{i},2024-02-01\n" for i in range(30))
    )
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    with pytest.raises(GraphError, match=r"nodes.csv: no column 'topic' \(--label-column\); it has id, age, joined"):
        read_graph(tmp_path, label_column="topic")
    with pytest.raises(GraphError, match=r"nodes.csv: 3 faults: .*row 2.*(row 3.*row 4|row 4.*row 3)"):
        read_graph(tmp_path)
