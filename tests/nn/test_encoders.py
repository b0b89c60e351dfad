"""Encoders equal their formulas written out hop by hop."""

import torch

from degem.nn.degem_published import MultiHopEncoder, OneLayerEncoder


def test_multi_hop_encoder_equals_the_formula() -> None:
    encoder, hops = MultiHopEncoder(4, 2, 3).eval(), torch.randn(3, 6, 4)
    parts = []
    for hop in range(3):
        projected = hops[hop] @ encoder.hop_weight[hop] + encoder.hop_bias[hop]
        parts.append(torch.relu(projected / projected.norm(dim=1, keepdim=True)))
    expected = torch.relu(torch.cat(parts, dim=1) @ encoder.fuse.weight.T + encoder.fuse.bias)
    torch.testing.assert_close(encoder(hops @ encoder.projection), expected)


def test_one_layer_encoder_is_one_graph_convolution() -> None:
    encoder, hop = OneLayerEncoder(4, 3), torch.randn(1, 6, 4)
    assert list(encoder.hops) == [1]
    torch.testing.assert_close(encoder(hop @ encoder.projection), torch.relu(encoder.linear(hop[0])))
