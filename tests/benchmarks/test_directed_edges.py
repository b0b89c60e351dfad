"""The study of one-way edges: its propagations by hand, and a page that says what its rows say."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from degem import Detector, Graph
from degem.detectors.split import resolve_training_set
from degem.ops.adjacency import looped_edges
from degem.ops.features import to_tensor


@pytest.fixture(scope="module")
def study() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "directed_edges.py"
    spec = importlib.util.spec_from_file_location("directed_edges", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    for name in ("gkde-as-printed", "mahalanobis-as-printed", "odin-as-printed", "oodgat-with-decay"):
        del Detector.registry[name]  # of the study alone
    return module


@pytest.fixture
def registered(study: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (study.PrintedGKDE, study.PrintedMahalanobis, study.PrintedODIN):
        monkeypatch.setitem(Detector.registry, kind.name, kind)


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


def test_attention_sums_along_one_way_edges_with_the_right_gradient(study: ModuleType) -> None:
    edges = looped_edges(wired([(0, 1), (0, 2)], 3))
    weights, x = torch.ones(len(edges.senders), requires_grad=True), torch.tensor([[1.0], [2.0], [4.0]])
    x.requires_grad_()
    total = study.summed_one_way(edges, weights, x)
    total.sum().backward()
    assert total[:, 0].tolist() == [1.0, 3.0, 5.0]
    assert x.grad is not None
    assert x.grad[:, 0].tolist() == [3.0, 1.0, 1.0]


def two_classes() -> Graph:
    """Two groups of nodes, of which the training nodes are the last ones."""
    features = np.random.default_rng(0).random((40, 6)).astype(np.float32)
    features[::2, :3] += 2
    masks = {"train": np.arange(40) >= 20, "val": np.arange(40) < 10}
    edges = [(i, i + 2) for i in range(38)]
    return Graph.from_arrays(features=features, edges=edges, labels=[0, 1] * 20, masks=masks)


def test_the_printed_mahalanobis_reads_the_first_nodes_and_puts_absent_classes_at_zero(study: ModuleType) -> None:
    graph = two_classes()
    fitted = study.PrintedMahalanobis(num_epochs=3, absent_classes=True).fit(graph, calibrate=False)
    latents = fitted.embed(graph)
    first, labels = latents[:20], graph.labels[20:]
    np.testing.assert_allclose(fitted.means_[0], first[labels == 0].mean(axis=0), rtol=1e-5)
    assert fitted.means_.shape[0] == 3
    assert not fitted.means_[2].any()
    assert (fitted.decision_function(graph) <= 0).all()


def test_weight_decay_shrinks_the_attention_network_and_nothing_else(study: ModuleType) -> None:
    graph = two_classes()
    free, decayed = (
        study.DecayingOODGAT(num_epochs=20, weight_decay=decay).fit(graph).network_.first.linear.weight.detach().norm()
        for decay in (0.0, 0.1)
    )
    assert decayed < free
    assert float(free) == float(study.OODGAT(num_epochs=20).fit(graph).network_.first.linear.weight.detach().norm())
    assert torch.optim.Adam.__name__ == "Adam"


def test_the_printed_gkde_sums_its_losses_over_nodes(study: ModuleType) -> None:
    graph = two_classes()
    advice = torch.full((40, 2), 0.5).log()
    training, _, _ = resolve_training_set(graph, None, None, None, 0, calibrate=False)
    logits = torch.randn(40, 2, generator=torch.Generator().manual_seed(0))
    ours, printed = (kind()._advised(advice, training)(logits, 100) for kind in (study.GKDE, study.PrintedGKDE))
    factors = {name: float(printed[name] / ours[name]) for name in ours}
    assert factors == pytest.approx({"classification": 20, "prior": 40, "teacher": 80}, rel=1e-5)


@pytest.mark.usefixtures("registered")
def test_a_suffix_says_how_a_method_is_run(study: ModuleType) -> None:
    (plain,) = study.variants("oodgat: no decay", "feature", 0)
    assert (plain.method, dict(plain.changes)) == ("oodgat", {"normalize_features": False})
    assert len(study.variants("odin: searched", "feature", 0)) == study.DRAWS
    (gkde,) = study.variants("gkde: probability", "label", 0)
    assert gkde.detector().uncertainty == "probability"
    (gpn,) = study.variants("gpn: probability", "label", 0)
    assert gpn.changes["uncertainty"] == "probability"
    (mahalanobis,) = study.variants("mahalanobis", "label", 0)
    assert mahalanobis.detector().absent_classes


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
