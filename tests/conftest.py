"""What every test may use: small graphs, and the real datasets where they are on the machine."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from tests.browser import browser as browser
from tests.browser import opened as opened
from tests.postgresql import postgresql as postgresql

from degem import Graph

torch.set_num_threads(1)
# The same examples on every run, and no clock: a busy machine must not turn a test red.
settings.register_profile("degem", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("degem")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of raw datasets; tests that need it are skipped where there is none."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    root = Path(os.environ.get("DEGEM_DATA", beside))
    if not (root / "Planetoid").is_dir():
        pytest.skip(f"no datasets in {root}: set DEGEM_DATA to a folder in the raw layout of PyG's loaders")
    return root


def planted_graph(num_nodes: int = 120, num_classes: int = 3, num_features: int = 12, seed: int = 0) -> Graph:
    """A homophilic graph: one Gaussian cloud of features a class, edges mostly within classes."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(num_nodes) % num_classes)
    centres = 2 * rng.standard_normal((num_classes, num_features))
    features = centres[labels] + 0.5 * rng.standard_normal((num_nodes, num_features))
    same = labels[:, None] == labels[None, :]
    chance = np.triu(np.where(same, 0.15, 0.01), 1)
    edges = np.argwhere(rng.random((num_nodes, num_nodes)) < chance)
    return Graph.from_arrays(features=features, edges=edges, labels=labels)


@pytest.fixture(scope="session")
def small_graph() -> Graph:
    """A planted graph of 120 nodes in three classes."""
    return planted_graph()
