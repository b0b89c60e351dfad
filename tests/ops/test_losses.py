"""Losses and readouts against their formulas written out plainly."""

import math

import pytest
import torch

from degem.ops import losses
from degem.ops.losses import contrastive_divergence, energy_readout, grace_loss, infomax_loss, logit_energy, sugrl_loss


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_infomax(generator: torch.Generator) -> None:
    positive, negative = torch.randn(6, generator=generator), torch.randn(6, generator=generator)
    total = sum(math.log(1 / (1 + math.exp(-z))) for z in positive.tolist())
    total += sum(math.log(1 - 1 / (1 + math.exp(-z))) for z in negative.tolist())
    assert infomax_loss(positive, negative).item() == pytest.approx(-total / 12, rel=1e-5)


def test_grace(generator: torch.Generator) -> None:
    first, second = torch.randn(4, 3, generator=generator), torch.randn(4, 3, generator=generator)

    def similarity(a: torch.Tensor, b: torch.Tensor) -> float:
        return math.exp(torch.cosine_similarity(a, b, dim=0).item() / 0.5)

    def one_way(us: torch.Tensor, vs: torch.Tensor) -> float:
        losses = []
        for i in range(4):
            others = sum(similarity(us[i], vs[k]) + similarity(us[i], us[k]) for k in range(4) if k != i)
            losses.append(-math.log(similarity(us[i], vs[i]) / (similarity(us[i], vs[i]) + others)))
        return sum(losses) / 4

    expected = (one_way(first, second) + one_way(second, first)) / 2
    assert grace_loss(first, second).item() == pytest.approx(expected, rel=1e-5)


def test_grace_in_blocks_has_the_plain_gradient(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "BLOCK", 4)
    first, second = (torch.randn(7, 3, generator=generator, requires_grad=True) for _ in range(2))
    z = torch.nn.functional.normalize(torch.cat([first, second]))
    similarity = z @ z.T / 0.5
    others = similarity.masked_fill(torch.eye(14, dtype=torch.bool), -torch.inf)
    pairs = torch.cat([similarity.diagonal(7), similarity.diagonal(-7)])
    plain = (others.logsumexp(dim=1) - pairs).mean()
    ours = grace_loss(first, second)
    torch.testing.assert_close(ours, plain)
    slopes = (torch.autograd.grad(loss, (first, second)) for loss in (ours, plain))
    torch.testing.assert_close(*slopes)


def test_sugrl(generator: torch.Generator) -> None:
    a, s, n, negative = (torch.rand(5, 3, generator=generator) for _ in range(4))
    expected = 0.0
    for i in range(5):
        away = (a[i] - negative[i]).square().sum().item()
        to_structure, to_neighbour = (a[i] - s[i]).square().sum().item(), (a[i] - n[i]).square().sum().item()
        expected += max(0, to_structure - away + 0.2) + max(0, to_neighbour - away + 0.2)
        expected -= min(0, to_structure - away + 0.2 + 0.4)
    assert sugrl_loss(a, s, n, negative).item() == pytest.approx(expected / 5, rel=1e-5)


def test_contrastive_divergence_penalises_both_sides() -> None:
    loss = contrastive_divergence(torch.tensor([1.0, 2.0]), torch.tensor([4.0]), penalty=0.5)
    assert loss.item() == pytest.approx(1.5 - 4 + 0.5 * (2.5 + 16))


def test_logit_energy_with_temperature() -> None:
    logits = torch.tensor([[1.0, 3.0]])
    expected = -2 * math.log(math.exp(0.5) + math.exp(1.5))
    assert logit_energy(logits, temperature=2.0).item() == pytest.approx(expected)


def test_readout_leans_to_low_energy() -> None:
    latents, energies = torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 1.0])
    weight = math.exp(-1) / (1 + math.exp(-1))
    assert energy_readout(latents, energies, 1.0).item() == pytest.approx(weight)
    assert energy_readout(latents, energies, 0.25).item() == pytest.approx(0.25 * weight + 0.75 * 0.5)
    assert energy_readout(latents, energies, 0.0).item() == pytest.approx(0.5)
