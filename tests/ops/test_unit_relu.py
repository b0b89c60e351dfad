"""The fused pass equals PyTorch's operations one after the other, and so do its gradients."""

import pytest
import torch
from torch.nn import functional as F

from degem.ops.unit_relu import keep_mask, unit_relu


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_equals_the_plain_operations_and_their_gradients(dropout: float) -> None:
    torch.manual_seed(0)
    products, bias = torch.randn(3, 20, 7, requires_grad=True), torch.randn(3, 1, 7, requires_grad=True)
    with torch.no_grad():
        products[1, 4], bias[1] = 0.0, 0.0  # a row without length
    scale, weight = torch.rand(3, 20, 1, requires_grad=True), torch.randn(20, 21)
    torch.manual_seed(1)
    fused = unit_relu(products, bias, dropout, scale)
    torch.manual_seed(1)
    kept = keep_mask(products.shape, dropout) / (1 - dropout) if dropout else 1.0
    plain = (F.relu(F.normalize(scale * products + bias, dim=2)) * kept).transpose(0, 1).flatten(1)
    torch.testing.assert_close(fused, plain)
    slopes = [torch.autograd.grad((weight * y).sum(), (products, bias, scale)) for y in (fused, plain)]
    torch.testing.assert_close(slopes[0], slopes[1])


def test_without_a_scale_rows_are_as_they_are() -> None:
    products, bias = torch.randn(3, 20, 7), torch.randn(3, 1, 7)
    torch.testing.assert_close(unit_relu(products, bias, 0.0), unit_relu(products, bias, 0.0, torch.ones(3, 20, 1)))


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.5, 0.999])
def test_a_mask_keeps_its_share_of_independent_entries(dropout: float) -> None:
    torch.manual_seed(0)
    kept = keep_mask((101, 999), dropout).double()
    noise = (dropout * (1 - dropout) / kept.numel()) ** 0.5
    assert abs(kept.mean() - (1 - dropout)) <= 4 * noise + 2**-17
    together = (kept[:, 1:] * kept[:, :-1]).mean()
    assert abs(together - (1 - dropout) ** 2) <= 6 * noise + 2**-16
