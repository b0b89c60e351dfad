"""The published DeGEM: an epoch of each version equals a plain transcription, and every switch works."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from degem import Graph
from degem.detectors.degem_published import DeGEMPublished
from degem.detectors.degem_published.model import PublishedModel
from degem.detectors.degem_published.trainer import Trainer
from degem.detectors.degem_published.views import Views
from degem.ops.langevin import LangevinSettings
from degem.propagation.hop_features import hop_features

SMALL: dict[str, Any] = {"latent_dim": 8, "num_hops": 2, "num_epochs": 3}
SWITCHES: list[dict[str, Any]] = [
    {"version": "release"},
    {"multi_hop": False},
    {"contrast": "none"},
    {"contrast": "grace"},
    {"contrast": "sugrl"},
    {"condition_weight": 0.0},
    {"energy_readout_weight": 0.0},
    {"classification_weight": 0.0},
    {"energy": "logits"},
    {"energy_propagation": True},
]
TRAIN = np.arange(0, 120, 3)
CONDITION, READOUT, PENALTY, CLASSES, RATE, DECAY = 0.7, 0.6, 0.5, 0.3, 1e-2, 1e-2


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: "-".join(f"{k}={v}" for k, v in switch.items()))
def test_every_switch_trains_and_changes_the_scores(small_graph: Graph, switch: dict[str, Any]) -> None:
    plain = DeGEMPublished(**SMALL).fit(small_graph)
    switched = DeGEMPublished(**{**SMALL, **switch}).fit(small_graph)
    assert not np.allclose(switched.decision_function(small_graph), plain.decision_function(small_graph))


@pytest.mark.parametrize("version", ["paper", "release"])
def test_saved_and_loaded_scores_are_bit_equal(small_graph: Graph, tmp_path: Path, version: Any) -> None:
    detector = DeGEMPublished(**SMALL, version=version).fit(small_graph)
    detector.save(tmp_path / "model")
    again = DeGEMPublished.load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(small_graph), detector.decision_function(small_graph))
    np.testing.assert_array_equal(again.embed(small_graph, nodes=[3, 5]), detector.embed(small_graph, nodes=[3, 5]))


def test_the_release_starts_from_the_weights_of_a_tensor_of_three_dimensions(small_graph: Graph) -> None:
    wide = DeGEMPublished(latent_dim=64, num_hops=5, num_epochs=0)
    limits = {}
    for version, (fan_in, fan_out) in {"paper": (12, 64), "release": (12 * 64, 6 * 64)}.items():
        encoder = wide.set_params(version=version).fit(small_graph).model_.encoder
        limits[version] = encoder.hop_weight.abs().max().item()  # type: ignore[union-attr, operator]
        assert limits[version] == pytest.approx((6 / (fan_in + fan_out)) ** 0.5, rel=0.01)
    assert limits["release"] < limits["paper"] / 3


def test_the_release_has_no_hop_bias_and_a_critic_bias(small_graph: Graph) -> None:
    paper, release = (
        dict(DeGEMPublished(**SMALL, version=version).fit(small_graph).model_.named_parameters())
        for version in ("paper", "release")  # type: ignore[arg-type]
    )
    assert paper["encoder.hop_bias"].any()
    assert not release["encoder.hop_bias"].any()
    assert release["critic.bias"].any()
    assert "critic.bias" not in paper


def test_the_head_of_the_release_drops_what_the_setting_says(small_graph: Graph) -> None:
    shares = {
        (version, dropout): DeGEMPublished(**SMALL, version=version, dropout=dropout)
        .fit(small_graph)
        .model_.head.dropout
        for version in ("paper", "release")
        for dropout in (0.0, 0.3)
    }
    assert shares == {("paper", 0.0): 0.0, ("paper", 0.3): 0.0, ("release", 0.0): 0.0, ("release", 0.3): 0.3}


@pytest.mark.parametrize("version", ["paper", "release"])
def test_one_epoch_equals_the_transcription(small_graph: Graph, version: Any) -> None:
    """No dropout, no noise of chains: the three losses, the summary, and every weight after the optimiser's step."""
    settings = DeGEMPublished(
        version=version,
        latent_dim=8,
        num_hops=2,
        dropout=0.0,
        condition_weight=CONDITION,
        energy_readout_weight=READOUT,
        energy_penalty=PENALTY,
        classification_weight=CLASSES,
        learning_rate=RATE,
        weight_decay=DECAY,
        langevin=LangevinSettings(num_steps=2, step_size=0.1, noise_std=0.0),
    )
    torch.manual_seed(0)
    model = PublishedModel(settings, 12, 3)
    features = np.asarray(small_graph.features)
    views = Views(small_graph.adjacency, features, 2, self_weight=0.5, contrast="dgi", rng=np.random.default_rng(0))
    trainer = Trainer(model, views, TRAIN, small_graph.labels, settings, torch.Generator().manual_seed(0))
    weights = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    order = np.random.default_rng([views.entropy, 0]).permutation(120)
    hops, corrupted = (
        torch.from_numpy(hop_features(small_graph.adjacency, x, 2, self_weight=0.5))
        for x in (features, features[order])
    )
    labels = torch.from_numpy(small_graph.labels[TRAIN].copy())
    generator = torch.Generator()
    generator.set_state(trainer.generator.get_state())
    buffer = trainer.buffer.clone()

    losses = trainer.step(0)
    expected, summary, moved = transcribed_epoch(weights, hops, corrupted, labels, buffer, generator, version)
    assert dict(losses) == pytest.approx(expected, rel=1e-4, abs=1e-5)
    torch.testing.assert_close(model.summary, summary, rtol=1e-4, atol=1e-5)
    for name, weight in model.named_parameters():
        torch.testing.assert_close(
            weight.detach(), moved[name], rtol=1e-3, atol=1e-4, msg=lambda text, n=name: n + text
        )


def transcribed_epoch(
    start: dict[str, Tensor],
    hops: Tensor,
    corrupted: Tensor,
    labels: Tensor,
    buffer: Tensor,
    generator: torch.Generator,
    version: str,
) -> tuple[dict[str, float], Tensor, dict[str, Tensor]]:
    """Losses, summary and weights of the first epoch, written down from the paper or from what the release does."""
    release = version == "release"
    w = {name: weight.clone().requires_grad_() for name, weight in start.items()}

    def encode(x: Tensor) -> Tensor:
        parts = [F.relu(F.normalize(x[i] @ w["encoder.hop_weight"][i] + w["encoder.hop_bias"][i])) for i in range(3)]
        return F.relu(torch.cat(parts, dim=1) @ w["encoder.fuse.weight"].T + w["encoder.fuse.bias"])

    def f(x: Tensor, s: Tensor, *, training: bool = True) -> Tensor:
        joined = torch.cat([x, (CONDITION * s).expand(len(x), -1)], dim=1)
        z = F.relu(joined @ w["head.hidden.weight"].T + w["head.hidden.bias"])
        if release:  # in evaluation mode the running mean 0 and variance 1 of an untrained BatchNorm
            mean = z.mean(dim=0) if training else torch.zeros(z.shape[1])
            variance = z.var(dim=0, correction=0) if training else torch.ones(z.shape[1])
            z = (z - mean) / (variance + 1e-5).sqrt() * w["head.norm.weight"] + w["head.norm.bias"]
        return (z @ w["head.out.weight"].T + w["head.out.bias"])[:, 0]

    h = encode(hops)
    fixed = h.detach()
    previous = fixed.mean(dim=0)  # p̄⁽⁰⁾ is uniform
    rows = torch.randperm(len(buffer), generator=generator)[: len(TRAIN)]
    fresh = torch.rand(len(rows), 1, generator=generator) < 0.05
    chains = torch.where(fresh, 2 * torch.rand(len(rows), 8, generator=generator) - 1, buffer[rows])
    for _ in range(2):
        chains = chains.detach().requires_grad_()
        chains = chains - 0.1 * torch.autograd.grad(f(chains, previous, training=False).sum(), chains)[0]
    chains = chains.detach()

    energies = f(fixed, previous)  # the release's BatchNorm sees every node here
    data, sampled = energies[TRAIN], f(chains, previous)
    energy = data.mean() - sampled.mean() + PENALTY * (data.square().mean() + sampled.square().mean())
    adam = torch.optim.Adam(w.values(), lr=RATE, weight_decay=DECAY)
    if not release:  # the head's step comes first, and the summary sees the new head
        energy.backward()
        adam.step()  # moves what has a gradient: the head alone
        adam.zero_grad()
        energies = f(fixed, previous)
    shares = READOUT * torch.softmax(-energies.detach(), dim=0) + (1 - READOUT) / 120
    s = shares @ h
    bias = w.get("critic.bias", torch.zeros(1))
    real, fake = h @ w["critic.weight"] @ s + bias, encode(corrupted) @ w["critic.weight"] @ s + bias
    contrast = -(torch.sigmoid(real).log().mean() + (1 - torch.sigmoid(fake)).log().mean()) / 2
    classification = F.cross_entropy(h[TRAIN] @ w["classifier.weight"].T + w["classifier.bias"], labels)
    loss = contrast + CLASSES * classification + (energy if release else 0.0)
    loss.backward()
    if release:
        w["encoder.hop_bias"].grad = None  # it has none there
    adam.step()
    found = {"energy": energy.item(), "contrast": contrast.item(), "classification": classification.item()}
    return found, s.detach(), {name: weight.detach() for name, weight in w.items()}
