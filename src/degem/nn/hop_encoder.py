"""The encoder of DeGEM's default: hop directions and hop lengths, apart."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from degem.ops.unit_relu import unit_relu

GAIN, LEAK = 4.0, 0.1


class HopDirectionEncoder(nn.Module):
    r"""A multi-hop encoder that sees where each hop points, and how long it is, as separate inputs.

    Each hop's direction :math:`X^{(\ell)} / \|X^{(\ell)}\|` is projected to :math:`d`, and so are the standardised
    log-lengths (with log-degree); each projection is scaled to length 4, then ReLU and dropout; all are concatenated
    and mapped to :math:`d`. Lengths and degrees of an OOD node can be far out: this way they cannot drown the rest.

    Arguments:
        in_dim: The number of feature columns :math:`r`.
        num_inputs: The number of hops that are used.
        num_lengths: The number of log-lengths.
        latent_dim: The size :math:`d` of the latent.
        dropout: The dropout probability.

    Example:
        >>> encoder = HopDirectionEncoder(4, 3, 5, 8)
        >>> encoder(torch.randn(3, 6, 4) @ encoder.hop_weight, torch.ones(3, 6, 1), torch.randn(6, 5)).shape
        torch.Size([6, 8])
    """

    def __init__(
        self, in_dim: int, num_inputs: int, num_lengths: int, latent_dim: int, *, dropout: float = 0.3
    ) -> None:
        super().__init__()
        self.hop_weight = nn.Parameter(torch.randn(num_inputs, in_dim, latent_dim) / in_dim**0.5)
        self.hop_bias = nn.Parameter(torch.zeros(num_inputs, 1, latent_dim))
        self.lengths = nn.Linear(num_lengths, latent_dim)
        self.fuse = nn.Linear((num_inputs + 1) * latent_dim, latent_dim)
        self.dropout = dropout

    def forward(self, products: Tensor, inverse_norm: Tensor, lengths: Tensor) -> Tensor:
        """Latents of shape (n, d).

        Arguments:
            products: Hop features times ``hop_weight``, of shape (hops, n, d).
            inverse_norm: One over the length of each hop's row, of shape (hops, n, 1).
            lengths: Standardised log-lengths, of shape (n, e).
        """
        last = (0, 0, 0, 0, 0, 1)  # the lengths come after the hops: no bias but their own, and as they are
        active = unit_relu(
            torch.cat([products, self.lengths(lengths)[None]]),
            F.pad(self.hop_bias, last),
            self.dropout if self.training else 0.0,
            F.pad(inverse_norm, last, value=1.0),
        )
        weight = GAIN * self.fuse.weight  # scaling the weight is cheaper than scaling its input
        return F.leaky_relu(F.linear(active, weight, self.fuse.bias), LEAK)
