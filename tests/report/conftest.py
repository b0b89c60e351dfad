"""A page with everything on it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.browser import HOSTILE

from degem import DeGEM, Graph
from degem.data.demo import digits_graph


@pytest.fixture(scope="session")
def hostile_graph() -> Graph:
    """Some of the digits, with ids, names and a time column; some of the names are HTML."""
    graph = digits_graph().subgraph(np.arange(500))
    rng = np.random.default_rng(0)
    years = rng.integers(2015, 2020, graph.num_nodes) + 2 * graph.columns["is_ood"]
    ids = np.array([f"digit-{row}{HOSTILE if row % 2 else ''}" for row in range(graph.num_nodes)], dtype=object)
    return graph.replace(
        node_ids=ids,
        class_names=tuple(f"{HOSTILE} {label}" for label in range(graph.num_classes)),
        feature_names=tuple(f"pixel {index // 8},{index % 8} {HOSTILE}" for index in range(64)),
        columns={**graph.columns, "year": years},
    )


@pytest.fixture(scope="session")
def fitted(hostile_graph: Graph) -> DeGEM:
    """DeGEM, trained just enough to have something to show."""
    return DeGEM(num_epochs=40, latent_dim=32, num_hops=2).fit(hostile_graph)
