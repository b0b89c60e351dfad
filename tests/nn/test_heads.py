"""Closed-form gradients equal autograd's."""

import pytest
import torch

from degem.nn.heads import BilinearEnergy, MLPEnergy


@pytest.mark.parametrize(
    "head",
    [
        MLPEnergy(6, 16),
        MLPEnergy(6, 16, condition_weight=0.0),
        MLPEnergy(6, 16, condition_weight=0.3, batch_norm=True),
        BilinearEnergy(6),
    ],
    ids=["mlp", "unconditional", "batch-norm", "bilinear"],
)
def test_gradient_equals_autograd(head: MLPEnergy | BilinearEnergy) -> None:
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
