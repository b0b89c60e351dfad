"""Rows of unit length, positive parts."""

import torch

from degem.nn.degem import unit_relu


def test_each_row_of_each_hop_is_scaled_by_itself() -> None:
    products = torch.tensor([[[3.0, -4.0], [0.0, 0.0]], [[0.0, 5.0], [1.0, 0.0]]])
    bias = torch.tensor([[[0.0, 0.0]], [[0.0, 1.0]]])
    expected = torch.tensor([[[0.6, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.5**0.5, 0.5**0.5]]])
    torch.testing.assert_close(unit_relu(products, bias), expected)
    scale = torch.tensor([[[2.0], [1.0]], [[0.2], [0.0]]])
    expected = torch.tensor([[[0.6, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    torch.testing.assert_close(unit_relu(products, bias, scale), expected)
