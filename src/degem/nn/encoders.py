"""Encoders from hop features to latents."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from degem.ops.unit_relu import unit_relu


class MultiHopEncoder(nn.Module):
    r"""The multi-hop encoder :math:`h = [\phi(X^{(0)}W^{(0)}) \| \cdots \| \phi(X^{(L)}W^{(L)})] W_{enc} + b_{enc}`.

    :math:`\phi` adds a bias, normalises each row to unit length, then ReLU, then dropout, and the encoder ends in a
    ReLU. The paper's formula has none of these; the authors' release has all but the bias. The release also initialises
    the hop weights as one tensor of three dimensions, whose fans are larger: the weights start much smaller.

    Arguments:
        in_dim: The number of feature columns :math:`r`.
        num_hops: The number of hops :math:`L`; 0 sees the node alone.
        latent_dim: The size :math:`d` of the latent.
        dropout: The dropout probability.
        release: No bias, and the initial weights of the authors' release.

    Example:
        >>> MultiHopEncoder(4, 2, 8)(torch.randn(3, 5, 4)).shape
        torch.Size([5, 8])
    """

    def __init__(
        self, in_dim: int, num_hops: int, latent_dim: int, *, dropout: float = 0.5, release: bool = False
    ) -> None:
        super().__init__()
        self.hop_weight = nn.Parameter(torch.empty(num_hops + 1, in_dim, latent_dim))
        self.hop_bias = nn.Parameter(torch.zeros(num_hops + 1, 1, latent_dim), requires_grad=not release)
        for weight in [self.hop_weight] if release else self.hop_weight:
            nn.init.xavier_uniform_(weight)
        self.fuse = nn.Linear((num_hops + 1) * latent_dim, latent_dim)
        self.dropout = dropout
        self.hops = range(num_hops + 1)

    @property
    def projection(self) -> Tensor:
        """The weights that the encoder's hops are multiplied with, of shape (L + 1, r, d)."""
        return self.hop_weight

    def forward(self, hops: Tensor) -> Tensor:
        """Latents of shape (n, d) from hop features of shape (L + 1, n, r)."""
        return self.latents(torch.bmm(hops, self.projection))

    def latents(self, products: Tensor) -> Tensor:
        """Latents of shape (n, d) from the products of the hops with the projection, of shape (L + 1, n, d)."""
        return F.relu(self.fuse(unit_relu(products, self.hop_bias, self.dropout if self.training else 0.0)))


class OneLayerEncoder(nn.Module):
    r"""One graph convolution, :math:`h = \mathrm{ReLU}(X^{(1)} W + b)`: the ablation's stand-in for the multi-hop one.

    Arguments:
        in_dim: The number of feature columns :math:`r`.
        latent_dim: The size :math:`d` of the latent.

    Example:
        >>> OneLayerEncoder(4, 8)(torch.randn(2, 5, 4)).shape
        torch.Size([5, 8])
    """

    def __init__(self, in_dim: int, latent_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_dim, latent_dim)
        self.hops = range(1, 2)

    @property
    def projection(self) -> Tensor:
        """The weights that the first hop is multiplied with, of shape (1, r, d)."""
        return self.linear.weight.T[None]

    def forward(self, hops: Tensor) -> Tensor:
        """Latents of shape (n, d) from the one-hop features, the second of ``hops``."""
        return self.latents(torch.bmm(hops[1:2], self.projection))

    def latents(self, products: Tensor) -> Tensor:
        """Latents of shape (n, d) from the product of the first hop with the projection, of shape (1, n, d)."""
        return F.relu(products.squeeze(0) + self.linear.bias)
