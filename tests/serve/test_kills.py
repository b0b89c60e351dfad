"""A server that is killed loses no acknowledged event and doubles none. A hundred times: benchmarks/serve.py kills."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from degem import DeGEM, Graph
from degem.data.archives import write_npz

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from serving import killed

pytestmark = pytest.mark.xdist_group("kills")


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_nothing_acknowledged_is_lost_and_nothing_is_doubled(
    served: DeGEM, served_graph: Graph, tmp_path: Path, request: pytest.FixtureRequest, database: str
) -> None:
    served.save(tmp_path / "model")
    write_npz(served_graph, tmp_path / "graph.npz")
    url = request.getfixturevalue("postgresql") if database == "postgresql" else None
    (tmp_path / "state").mkdir()
    found = killed(
        tmp_path / "model", tmp_path / "graph.npz", tmp_path / "state", count=1 if url else 2, seed=1, database=url
    )
    assert (found["lost"], found["doubled"], found["gaps"]) == (0, 0, 0)
    assert found["events"] >= found["batches"] >= 3
    assert found["score_difference"] < 1e-3
