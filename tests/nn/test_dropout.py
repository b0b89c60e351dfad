"""Dropout keeps its share, scales it up, follows the generator, and lets gradients through where it keeps."""

import torch

from degem.nn.dropout import dropout


def test_it_keeps_its_share_and_scales_it_up() -> None:
    for shape in ((1000, 9), (3, 7, 211)):
        dropped = dropout(torch.ones(shape), 0.3, torch.Generator().manual_seed(0))
        kept = dropped > 0
        torch.testing.assert_close(dropped[kept], torch.full_like(dropped[kept], 1 / 0.7))
        assert abs(kept.float().mean() - 0.7) < 0.03
        assert kept.float().mean(dim=0).std() > 0  # each value by itself


def test_the_generator_decides() -> None:
    values = torch.randn(100, 10)
    first, again = (dropout(values, 0.5, torch.Generator().manual_seed(4)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, dropout(values, 0.5, torch.Generator().manual_seed(5)))


def test_gradients_pass_where_values_are_kept() -> None:
    values = torch.ones(50, 10, requires_grad=True)
    dropped = dropout(values, 0.25, torch.Generator().manual_seed(0))
    dropped.sum().backward()
    assert torch.equal(values.grad, dropped.detach())
