"""A graph in a database, by two queries: real files of DuckDB and SQLite, a real PostgreSQL."""

import datetime
import sqlite3
from contextlib import closing
from decimal import Decimal

import duckdb
import numpy as np
import psycopg
import pytest

from degem import read_graph
from degem.errors import GraphError

TYPES = "id integer, balance {number}, joined date, colour {text}, vip boolean"
PEOPLE = [
    (row, 10.5 * row, datetime.date(2024, 1, 1 + row), ["red", "blue"][row % 2], row % 3 == 0) for row in range(20)
]
FRIENDS = [(row, (row + 1) % 20, 2.5) for row in range(20)]
CHOSEN = {
    "nodes_sql": "SELECT id, balance, joined, colour, vip FROM people",
    "edges_sql": "SELECT one, other, much AS weight FROM friends",
}
NAMES = ("balance", *(f"joined ({part}, {wave})" for part in ("weekday", "season") for wave in ("sine", "cosine")))


def fill(execute, number="double precision", text="varchar", mark="?"):
    execute(f"CREATE TABLE people ({TYPES.format(number=number, text=text)})")
    execute("CREATE TABLE friends (one integer, other integer, much real)")
    for row in PEOPLE:
        execute(f"INSERT INTO people VALUES ({', '.join([mark] * 5)})", row)
    for row in FRIENDS:
        execute(f"INSERT INTO friends VALUES ({', '.join([mark] * 3)})", row)
    execute("CREATE VIEW nodes AS SELECT id, balance FROM people")
    execute("CREATE VIEW edges AS SELECT one, other FROM friends")


def check(database):
    """The graph is there, by the chosen queries and by the usual ones."""
    graph = read_graph(database, **CHOSEN)
    assert graph.feature_names == (*NAMES, "colour=blue", "colour=red", "vip", "(unseen)")
    assert graph.node_ids.tolist() == list(range(20))
    assert graph.strengths.tolist() == [5.0] * 20
    again = read_graph(database, **CHOSEN, schema=graph.schema)
    assert np.array_equal(again.features, graph.features)
    assert read_graph(database).feature_names == ("balance", "(unseen)")
    for sql, fault in (("SELECT nothing FROM people", "--nodes-sql"), ("SELECT id, id FROM people", "called 'id'")):
        with pytest.raises(GraphError, match=fault) as caught:
            read_graph(database, nodes_sql=sql)
        assert "\n" not in str(caught.value)
    with pytest.raises(GraphError):
        read_graph(database, nodes_sql="DROP VIEW edges")
    assert read_graph(database).num_edges == 20  # nothing was dropped


def test_duckdb(tmp_path):
    with closing(duckdb.connect(str(tmp_path / "shop.db"))) as connection:
        fill(connection.execute, text="ENUM ('red', 'blue')", number="decimal(10, 2)")
    check(f"duckdb:{tmp_path / 'shop.db'}")


def test_sqlite(tmp_path):
    sqlite3.register_adapter(datetime.date, datetime.date.isoformat)
    with closing(sqlite3.connect(tmp_path / "a shop?.db")) as connection:
        fill(connection.execute)
        connection.commit()
    check(f"sqlite:{tmp_path / 'a shop?.db'}")


def test_sqlite_columns_of_several_types(tmp_path):
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        connection.execute("CREATE TABLE nodes (id, x)")
        connection.execute("CREATE TABLE edges (a, b)")
        rows = [(row, x) for row, x in enumerate([1, 2.5, "", None, "3"])]
        connection.executemany("INSERT INTO nodes VALUES (?, ?)", rows)
        connection.commit()
        graph = read_graph(f"sqlite:{tmp_path / 's.db'}")
        assert graph.schema.columns[0].treatment == "number"
        assert graph.schema.columns[0].center == 2.5
        connection.execute("UPDATE nodes SET x = 'much' WHERE id = 1")
        connection.execute("UPDATE nodes SET x = x'ff00' WHERE id = 4")
        connection.commit()
    with pytest.raises(GraphError, match=r"sqlite \(--nodes-sql\): column 'x', row 2: 'much'"):
        read_graph(f"sqlite:{tmp_path / 's.db'}", columns={"x": "number"})


@pytest.mark.parametrize("name", ["duckdb:gone.db", "sqlite:gone.db", "sqlite:", "duckdb:"])
def test_files_that_are_not_there(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GraphError, match="there is no file"):
        read_graph(name)
    assert list(tmp_path.iterdir()) == []  # and none is made


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_files_that_are_no_database(kind, tmp_path):
    (tmp_path / "x.db").write_bytes(b"x" * 5000)
    with pytest.raises(GraphError, match=rf"{kind} \(--nodes-sql\)"):
        read_graph(f"{kind}:{tmp_path / 'x.db'}")


def test_a_query_without_a_table(tmp_path):
    sqlite3.connect(tmp_path / "x.db").close()
    with pytest.raises(GraphError, match="gives no table"):
        read_graph(f"sqlite:{tmp_path / 'x.db'}", nodes_sql="ATTACH ':memory:' AS other", edges_sql="SELECT 1, 2")


def test_queries_are_for_databases(tmp_path):
    with pytest.raises(GraphError, match="is no database"):
        read_graph(tmp_path, nodes_sql="SELECT 1")


# -- PostgreSQL ---------------------------------------------------------------------------------------------------


def test_postgresql(postgresql):
    with psycopg.connect(postgresql) as connection:
        fill(connection.execute, number="numeric", mark="%s")
    check(postgresql)
    with psycopg.connect(postgresql) as connection:
        connection.execute("UPDATE people SET balance = %s WHERE id = 3", [Decimal("NaN")])
    assert read_graph(postgresql).schema.columns[0].missing > 0
    odd = "SELECT id, now() - id * interval '1 day' AS at, md5(id::text)::uuid AS code, ARRAY[id] AS list FROM people"
    with pytest.raises(GraphError, match="column 'list' holds list"):
        read_graph(postgresql, nodes_sql=odd)
    graph = read_graph(postgresql, nodes_sql=odd, feature_columns=["at", "code"])
    assert [column.treatment for column in graph.schema.columns] == ["time", "left out"]
    with pytest.raises(GraphError) as caught:
        read_graph(postgresql.replace("/postgres", "/nowhere"))
    assert "secret" not in str(caught.value)
