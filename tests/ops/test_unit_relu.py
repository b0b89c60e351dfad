"""The fused pass equals PyTorch's operations one after the other, and so do its gradients."""

import pytest
import torch
from torch.nn import functional as F

from degem.ops.unit_relu import unit_relu


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_equals_the_plain_operations_and_their_gradients(dropout: float) -> None:
    torch.manual_seed(0)
    products, bias = torch.randn(3, 20, 7, requires_grad=True), torch.randn(3, 1, 7, requires_grad=True)
    with torch.no_grad():
        products[1, 4], bias[1] = 0.0, 0.0  # a row without length
    weight = torch.randn(20, 21)
    torch.manual_seed(1)
    fused = unit_relu(products, bias, dropout)
    torch.manual_seed(1)
    plain = F.dropout(F.relu(F.normalize(products + bias, dim=2)), dropout).transpose(0, 1).flatten(1)
    torch.testing.assert_close(fused, plain)
    slopes = [torch.autograd.grad((weight * y).sum(), (products, bias)) for y in (fused, plain)]
    torch.testing.assert_close(slopes[0], slopes[1])
