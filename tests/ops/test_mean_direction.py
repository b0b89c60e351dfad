"""The fused pass is the sum of scaled hops, scaled to length 1, and has its gradient."""

import torch
from torch.nn import functional as F

from degem.ops.mean_direction import mean_direction


def inputs(nodes: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    hops, scale = torch.randn(3, nodes, 5, generator=generator), torch.rand(3, nodes, 1, generator=generator)
    return hops.requires_grad_(), scale.requires_grad_()


def test_values_and_gradients_are_those_of_the_plain_operations() -> None:
    hops, scale = inputs()
    weight = torch.arange(35.0).view(7, 5).sin()
    fused, plain = mean_direction(hops, scale), F.normalize((scale * hops).sum(dim=0), dim=1)
    torch.testing.assert_close(fused, plain)
    for ours, theirs in zip(
        *(torch.autograd.grad((weight * mean).sum(), (hops, scale)) for mean in (fused, plain)), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_rows_of_a_strided_view_are_read_where_they_lie() -> None:
    hops, scale = inputs(9)
    torch.testing.assert_close(mean_direction(hops[:, 2:6], scale[:, 2:6]), mean_direction(hops, scale)[2:6])


def test_hops_that_cancel_point_nowhere() -> None:
    hops = torch.tensor([[[1.0, -2.0]], [[-1.0, 2.0]]])
    assert not mean_direction(hops, torch.ones(2, 1, 1)).any()
