"""The energy over a mixture: gradient, base, samples."""

import numpy as np
import pytest
import torch

from degem.nn.degem import MixtureEnergy
from degem.ops.estimates import fit_mixture


@pytest.fixture
def energy() -> MixtureEnergy:
    torch.manual_seed(0)
    energy = MixtureEnergy(4, 3, 8)
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 20)
    energy.set_base(fit_mixture(rng.standard_normal((60, 4)) + 2 * rng.standard_normal((3, 4))[labels], labels))
    torch.nn.init.normal_(energy.slope)
    return energy


def test_gradient_equals_autograd(energy: MixtureEnergy) -> None:
    u = torch.randn(20, 4, requires_grad=True)
    (energy.base(u) + energy.residual(u)).sum().backward()
    torch.testing.assert_close(energy.gradient(u.detach()), u.grad, rtol=1e-4, atol=1e-5)


def test_head_starts_at_zero() -> None:
    energy, points = MixtureEnergy(4, 1, 8), torch.randn(5, 4)
    torch.testing.assert_close(energy(points), energy.base(points))


def test_samples_of_the_base_have_its_moments(energy: MixtureEnergy) -> None:
    samples = energy.sample_base(20_000, torch.Generator().manual_seed(0))
    share = energy.log_prior.exp()[:, None]
    torch.testing.assert_close(samples.mean(dim=0), (share * energy.centres).sum(dim=0), atol=0.1, rtol=0.05)


def test_a_base_of_more_components_than_the_mixture_is_the_same_density() -> None:
    rng = np.random.default_rng(1)
    mixture = fit_mixture(rng.standard_normal((40, 4)))
    one, three = MixtureEnergy(4, 1), MixtureEnergy(4, 3)
    for energy in (one, three):
        energy.set_base(mixture)
    points = torch.from_numpy(rng.standard_normal((10, 4))).float()
    torch.testing.assert_close(three(points), one(points))


def test_points_close_together_and_far_from_zero_keep_their_order() -> None:
    points = 1 + 1e-4 * np.random.default_rng(2).standard_normal((200, 4))
    mixture = fit_mixture(points)
    energy = MixtureEnergy(4, 1)
    energy.set_base(mixture)
    exact = (((points - mixture.mean) @ mixture.whitening) ** 2).sum(axis=1) / 2
    np.testing.assert_allclose(energy(torch.from_numpy(points).float()).numpy(), exact, rtol=0.05, atol=0.05)
