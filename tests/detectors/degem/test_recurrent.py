"""The paper's way of training: one iteration equals its equations, and every switch of the ablation works."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from degem import DeGEM, Graph
from degem.detectors.degem.recurrent_model import DeGEMModel, ModelShape
from degem.detectors.degem.recurrent_trainer import Trainer, TrainingSettings
from degem.detectors.degem.recurrent_views import Views
from degem.ops.langevin import LangevinSettings
from degem.ops.propagation import hop_features

SMALL: dict[str, Any] = {"latent_dim": 8, "num_hops": 2, "num_epochs": 3}
SWITCHES: list[dict[str, Any]] = [
    {"multi_hop": False},
    {"linear_hops": True},
    {"contrast": "none"},
    {"contrast": "grace"},
    {"contrast": "sugrl"},
    {"head": "bilinear"},
    {"head_batch_norm": True},
    {"condition_weight": 0.0},
    {"energy_readout_weight": 0.0},
    {"classification_weight": 0.0},
    {"energy": "logits"},
    {"energy_propagation": True},
    {"batch_size": 16},
    {"refresh_every": 2},
]


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: "-".join(f"{k}={v}" for k, v in switch.items()))
def test_every_switch_trains_and_changes_the_scores(small_graph: Graph, switch: dict[str, Any]) -> None:
    plain = DeGEM.as_published(**SMALL).fit(small_graph)
    switched = DeGEM.as_published(**SMALL, **switch).fit(small_graph)
    assert not np.allclose(switched.decision_function(small_graph), plain.decision_function(small_graph))


def test_saved_and_loaded_scores_are_bit_equal(small_graph: Graph, tmp_path: Any) -> None:
    detector = DeGEM.as_published(**SMALL, head_batch_norm=True).fit(small_graph)
    detector.save(tmp_path / "model")
    again = DeGEM.load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(small_graph), detector.decision_function(small_graph))
    np.testing.assert_array_equal(again.embed(small_graph, nodes=[3, 5]), detector.embed(small_graph, nodes=[3, 5]))


def test_explained_scores_are_the_scores(small_graph: Graph) -> None:
    detector = DeGEM.as_published(**SMALL).fit(small_graph)
    nodes = np.array([4, 9])
    from_hops = detector._score_from_hops(detector._hop_rows(small_graph, nodes)).detach().numpy()
    np.testing.assert_allclose(from_hops, detector.decision_function(small_graph)[nodes], rtol=1e-3, atol=1e-5)


def test_one_iteration_equals_the_equations(small_graph: Graph) -> None:
    """Full batch, no dropout, no chain noise: losses and the summary, written out from the paper."""
    torch.manual_seed(0)
    shape = ModelShape(12, 2, 8, 3, 0.0, True, False, "dgi", "mlp", 16, False, 0.7, "mle")
    model = DeGEMModel(shape)
    sampler = LangevinSettings(num_steps=2, step_size=0.1, noise_std=0.0)
    settings = TrainingSettings(None, 1e-3, 0.0, 0.3, 0.6, 0.5, sampler)
    views = Views(
        small_graph.adjacency,
        np.asarray(small_graph.features),
        2,
        self_weight=0.5,
        contrast="dgi",
        refresh_every=1,
        rng=np.random.default_rng(0),
    )
    train_nodes = np.arange(0, 120, 3)
    trainer = Trainer(model, views, train_nodes, small_graph.labels, settings, torch.Generator().manual_seed(0))
    features = np.asarray(small_graph.features)
    hops = torch.from_numpy(hop_features(small_graph.adjacency, features, 2, self_weight=0.5))
    chains, start_state = trainer.buffer.clone(), trainer.generator.get_state()
    with torch.no_grad():
        h = model.encoder(hops)
    summary = h.mean(dim=0)  # p̄⁽⁰⁾ is uniform

    def f(x: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([x, (0.7 * summary).expand(len(x), -1)], dim=1)
        return model.head.out(torch.relu(model.head.hidden(joined)))[:, 0]

    trainer.generator.set_state(start_state)
    rows = torch.randperm(len(chains), generator=trainer.generator)[: len(train_nodes)]
    fresh = torch.rand(len(rows), 1, generator=trainer.generator) < 0.05
    new = 2 * torch.rand(len(rows), 8, generator=trainer.generator) - 1
    x = torch.where(fresh, new, chains[rows])
    for _ in range(2):
        x = x.detach().requires_grad_()
        x = x - 0.1 * torch.autograd.grad(f(x).sum(), x)[0]
    data, sampled = f(h[train_nodes]), f(x.detach())
    energy_loss = data.mean() - sampled.mean() + 0.5 * (data.square().mean() + sampled.square().mean())
    logits = model.classifier(h[train_nodes])
    classification = F.cross_entropy(logits, torch.from_numpy(small_graph.labels[train_nodes].copy()))

    trainer.generator.set_state(start_state)
    losses = trainer.step(0)
    assert losses["energy"] == pytest.approx(energy_loss.item(), rel=1e-4, abs=1e-5)
    assert losses["classification"] == pytest.approx(classification.item(), rel=1e-4)
    weights = 0.6 * torch.softmax(-trainer.node_energies, dim=0) + 0.4 / 120
    torch.testing.assert_close(model.summary, weights @ h)
    assert losses["contrast"] > 0
