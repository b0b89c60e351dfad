"""The command as tests call it: in this process, so that a call costs no start-up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from degem import DeGEM, Graph
from degem.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        return Outcome(int(stop.value.code or 0), *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def model(small_graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of a small DeGEM, fitted on the features of ``small_graph`` with their names in a folder."""
    folder = tmp_path_factory.mktemp("model") / "model"
    names = [f"x{column}" for column in range(small_graph.num_features)]
    DeGEM(num_epochs=2, latent_dim=8).fit(small_graph.replace(feature_names=tuple(names))).save(folder)
    return folder


@pytest.fixture
def folder(small_graph: Graph, tmp_path: Path) -> Path:
    """``small_graph`` as CSV, class 2 unlabelled and marked as OOD in the column ``strange``."""
    import numpy as np
    import pandas as pd
    import scipy.sparse as sp

    path = tmp_path / "graph"
    path.mkdir()
    strange = small_graph.labels == 2
    nodes = pd.DataFrame({"id": [f"n{row}" for row in range(small_graph.num_nodes)]})
    nodes["topic"] = np.where(strange, "", np.array(["red", "blue", ""])[small_graph.labels])
    nodes["strange"] = strange
    for column, values in enumerate(np.asarray(small_graph.features).T):
        nodes[f"x{column}"] = values
    nodes.to_csv(path / "nodes.csv", index=False)
    upper = sp.triu(small_graph.adjacency).tocoo()
    pd.DataFrame({"source": nodes["id"][upper.row].array, "target": nodes["id"][upper.col].array}).to_csv(
        path / "edges.csv", index=False
    )
    return path
