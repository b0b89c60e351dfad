"""The study of one-way edges: its propagations by hand, and a page that says what its rows say."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from degem import Detector, Graph
from degem.ops.features import to_tensor


@pytest.fixture(scope="module")
def study() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "directed_edges.py"
    spec = importlib.util.spec_from_file_location("directed_edges", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("mahalanobis-as-printed", "odin-as-printed"):
        del Detector.registry[name]  # of the study alone
    return module


def wired(edges: list[tuple[int, int]], num_nodes: int) -> sp.csr_array:
    """Edges from source to target as a matrix from columns to rows."""
    source, target = np.array(edges).T
    ones = np.ones(len(edges), dtype=np.float32)
    return sp.csr_array(sp.coo_array((ones, (target, source)), shape=(num_nodes, num_nodes)))


def test_energy_goes_along_edges_and_a_node_nobody_links_to_loses_half(study: ModuleType) -> None:
    adjacency = to_tensor(wired([(0, 2), (1, 2)], 3))
    energy = study.halving_propagation(torch.tensor([4.0, 8.0, 16.0]), adjacency, num_steps=2, self_weight=0.5)
    assert energy.tolist() == [1.0, 2.0, 0.5 * (0.5 * 16 + 0.5 * 6) + 0.5 * 3.0]


def test_diffusion_keeps_ones_where_degrees_are_equal_and_loses_them_beside_a_hub(study: ModuleType) -> None:
    graph = Graph.from_arrays(features=np.eye(10), edges=[(i, (i + 1) % 10) for i in range(10)])
    np.testing.assert_allclose(study.diffused_ones(graph), 1, rtol=1e-5)
    star = Graph.from_arrays(features=np.eye(10), edges=[(0, i) for i in range(1, 10)])
    hub, *leaves = study.diffused_ones(star)
    assert hub > 1 > max(leaves)


def test_a_network_learns_on_one_way_edges_with_the_right_gradient(study: ModuleType) -> None:
    matrix = to_tensor(wired([(0, 1), (0, 2)], 3))
    x = torch.ones(3, 1, requires_grad=True)
    with study.as_in_the_benchmark():
        study.encoders_gnn.symmetric_product(matrix, x).sum().backward()
    assert x.grad is not None
    assert x.grad[:, 0].tolist() == [2.0, 0.0, 0.0]


def test_the_page_sets_both_kinds_of_edges_beside_the_published_figure(study: ModuleType) -> None:
    rows = [
        ("chameleon", "structure", "gnnsafe", "stored", 0, 35.0, 33.0),
        ("chameleon", "structure", "gnnsafe", "symmetric", 0, 99.0, 54.0),
        ("chameleon", "structure", "gpn-diffusion", "stored", 0, 80.0, np.nan),
    ]
    text = study.page(pd.DataFrame(rows, columns=study.COLUMNS))
    assert "| chameleon | structure | gnnsafe | 34.4 / 35.3 | 35.0 / 33.0 | 99.0 / 54.0 |" in text
    assert "| chameleon | structure | gpn-diffusion | 82.9 / 20.4 | 80.0 |  |" in text
    assert "0.6 points on one-way edges, 64.6 on symmetric" in text
