"""Closed-form gradients equal autograd's."""

import pytest
import torch

from degem.nn.degem_published import MLPEnergy
from degem.ops.langevin import LangevinSettings, langevin

HEADS = [
    MLPEnergy(6, 4),
    MLPEnergy(6, 16, condition_weight=0.0),
    MLPEnergy(6, 3, condition_weight=0.3, batch_norm=True),
]
HEAD_NAMES = ["mlp", "unconditional", "batch-norm"]


def autograd_langevin(
    head: MLPEnergy, start: torch.Tensor, summary: torch.Tensor, settings: LangevinSettings
) -> torch.Tensor:
    """The sampler as the paper writes it."""

    def gradient(chains: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            leaf = chains.detach().requires_grad_()
            return torch.autograd.grad(head(leaf, summary).sum(), leaf)[0]

    return langevin(start, gradient, settings, torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "head",
    [
        MLPEnergy(6, 16),
        MLPEnergy(6, 16, condition_weight=0.0),
        MLPEnergy(6, 16, condition_weight=0.3, batch_norm=True),
    ],
    ids=["mlp", "unconditional", "batch-norm"],
)
def test_gradient_equals_autograd(head: MLPEnergy) -> None:
    summary = torch.randn(6)
    head.train()
    head(torch.randn(50, 6), summary)  # moves BatchNorm's running statistics
    head.eval()
    latents = torch.randn(20, 6, requires_grad=True)
    head(latents, summary).sum().backward()
    assert latents.grad is not None
    torch.testing.assert_close(head.gradient(latents.detach(), summary), latents.grad)


def test_conditional_energy_is_the_mlp_on_the_concatenation() -> None:
    head, latents, summary = MLPEnergy(4, 8, condition_weight=0.7), torch.randn(5, 4), torch.randn(4)
    joined = torch.cat([latents, (0.7 * summary).expand(5, -1)], dim=1)
    expected = head.out(torch.relu(head.hidden(joined)))[:, 0]
    torch.testing.assert_close(head(latents, summary), expected)


@pytest.mark.parametrize("head", HEADS, ids=HEAD_NAMES)
def test_chains_without_noise_go_where_autograd_takes_them(head: MLPEnergy) -> None:
    settings = LangevinSettings(num_steps=7, step_size=0.3, noise_std=0.0)
    start, summary = torch.randn(30, 6), torch.randn(6)
    moved = head.eval().sample(start, summary, settings, torch.Generator())
    torch.testing.assert_close(moved, autograd_langevin(head, start, summary, settings), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("head", HEADS, ids=HEAD_NAMES)
def test_chains_with_noise_have_the_distribution_of_autograd_chains(head: MLPEnergy) -> None:
    settings = LangevinSettings(num_steps=10, step_size=0.5, noise_std=0.4)
    start, summary = torch.zeros(100_000, 6), torch.ones(6)
    moved = head.eval().sample(start, summary, settings, torch.Generator().manual_seed(0))
    expected = autograd_langevin(head, start, summary, settings)
    torch.testing.assert_close(moved.mean(dim=0), expected.mean(dim=0), rtol=0, atol=0.03)
    torch.testing.assert_close(moved.T.cov(), expected.T.cov(), rtol=0.05, atol=0.05)
    first, second = (head(chains, summary).quantile(torch.tensor([0.1, 0.5, 0.9])) for chains in (moved, expected))
    torch.testing.assert_close(first, second, rtol=0.05, atol=0.03)
