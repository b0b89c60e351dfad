"""Class densities of a graph posterior network: those of single flows, however many nodes go at once."""

import pytest
import torch

from degem.nn import posterior


@pytest.fixture
def densities() -> posterior.RadialDensities:
    torch.manual_seed(0)
    return posterior.RadialDensities(4, num_classes=3, num_layers=2)


@pytest.mark.parametrize("at_once", [1, 4 * 3 * 5, 1 << 20], ids=["one node", "five nodes", "all nodes"])
def test_densities_and_gradients_are_those_of_single_flows(
    densities: posterior.RadialDensities, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posterior, "AT_ONCE", at_once)
    points = torch.randn(12, 4, requires_grad=True)
    normal = torch.distributions.Normal(0.0, 1.0)
    columns = []
    for label in range(3):
        z, log_determinant = points, torch.zeros(12)
        for layer in densities.layers:
            z, change = layer[label](z)
            log_determinant = log_determinant + change
        columns.append(normal.log_prob(z).sum(dim=1) + log_determinant)
    expected, found = torch.stack(columns, dim=1), densities(points)
    torch.testing.assert_close(found, expected)
    probe, learned = torch.randn(12, 3), [points, *densities.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad((probe * found).sum(), learned), torch.autograd.grad((probe * expected).sum(), learned)
    )
