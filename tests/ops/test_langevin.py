"""The sampler against known answers."""

import math

import pytest
import torch

from degem.ops.langevin import LangevinSettings, fresh_chains, langevin, replayed_chains


def test_chains_stand_still_without_gradient_and_noise() -> None:
    start = torch.randn(7, 3)
    settings = LangevinSettings(num_steps=50, step_size=1.0, noise_std=0.0)
    assert torch.equal(langevin(start, torch.zeros_like, settings, torch.Generator()), start)


def test_start_is_left_as_it_was() -> None:
    start = torch.ones(2, 2)
    langevin(start, lambda h: h, LangevinSettings(), torch.Generator())
    assert torch.equal(start, torch.ones(2, 2))


@pytest.mark.parametrize("curvature", [0.5, 1.0, 3.0])
def test_variance_under_a_quadratic_energy(curvature: float) -> None:
    settings = LangevinSettings(num_steps=400, step_size=0.3, noise_std=0.2)
    generator = torch.Generator().manual_seed(0)
    chains = langevin(torch.zeros(40_000, 1), lambda h: curvature * h, settings, generator)
    expected = settings.noise_std**2 / (1 - (1 - settings.step_size * curvature) ** 2)
    assert chains.var().item() == pytest.approx(expected, rel=0.04)
    assert chains.mean().item() == pytest.approx(0, abs=4 * math.sqrt(expected / 40_000))


def test_same_generator_seed_same_chains() -> None:
    start, settings = torch.zeros(5, 2), LangevinSettings(noise_std=1.0)
    first, second = (langevin(start, lambda h: h, settings, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("start", ["uniform", "normal"])
def test_replay_mixes_buffer_and_fresh_chains_of_one_distribution(start: str) -> None:
    settings = LangevinSettings(fresh_share=0.25, start=start)  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(0)
    buffer = torch.full((8000, 2), 100.0)
    chains, rows = replayed_chains(buffer, 4000, settings, generator)
    fresh = chains[:, 0] != 100.0
    assert fresh.float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert len(rows.unique()) == 4000
    first = fresh_chains(20_000, 2, settings, generator)
    assert chains[fresh].std().item() == pytest.approx(first.std().item(), rel=0.05)
    assert chains[fresh].mean().item() == pytest.approx(first.mean().item(), abs=0.06)
