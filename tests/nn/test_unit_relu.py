"""Rows of unit length, positive parts, dropout."""

import torch

from degem.nn.degem import unit_relu


def test_each_row_of_each_hop_is_scaled_by_itself() -> None:
    products = torch.tensor([[[3.0, -4.0], [0.0, 0.0]], [[0.0, 5.0], [1.0, 0.0]]])
    bias = torch.tensor([[[0.0, 0.0]], [[0.0, 1.0]]])
    expected = torch.tensor([[0.6, 0.0, 0.0, 1.0], [0.0, 0.0, 0.5**0.5, 0.5**0.5]])
    torch.testing.assert_close(unit_relu(products, bias, 0.0), expected)
    scale = torch.tensor([[[2.0], [1.0]], [[0.2], [0.0]]])
    scaled = unit_relu(products, bias, 0.0, scale)
    torch.testing.assert_close(scaled[0], torch.tensor([0.6, 0.0, 0.0, 1.0]))
    torch.testing.assert_close(scaled[1], torch.tensor([0.0, 0.0, 0.0, 1.0]))


def test_dropout_keeps_its_share_and_scales_it_up() -> None:
    torch.manual_seed(0)
    dropped = unit_relu(torch.ones(2, 1000, 4), torch.zeros(2, 1, 4), 0.3)
    kept = dropped > 0
    torch.testing.assert_close(dropped[kept], torch.full_like(dropped[kept], 0.5 / 0.7))
    assert abs(kept.float().mean() - 0.7) < 0.03
