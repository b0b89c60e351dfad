"""Encoders from hop features to latents."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from degem.nn.dropout import dropout

GAIN, LEAK = 4.0, 0.1  # of the default's encoder


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
        active = F.dropout(unit_relu(products, self.hop_bias), self.dropout, self.training)
        return F.relu(self.fuse(active.transpose(0, 1).flatten(1)))


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


class HopDirectionEncoder(nn.Module):
    r"""The default's encoder, which sees where each hop points, and how long it is, as separate inputs.

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
            F.pad(inverse_norm, last, value=1.0),
        )
        dropped = dropout(active, self.dropout if self.training else 0.0)
        weight = GAIN * self.fuse.weight  # scaling the weight is cheaper than scaling its input
        return F.leaky_relu(F.linear(dropped.transpose(0, 1).flatten(1), weight, self.fuse.bias), LEAK)


def unit_relu(products: Tensor, bias: Tensor, scale: Tensor | None = None) -> Tensor:
    r"""The hops :math:`\phi(s^{(\ell)} Z^{(\ell)} + b^{(\ell)})`; :math:`\phi` makes rows of unit length, then ReLU.

    Arguments:
        products: The projected hops :math:`Z`, of shape (hops, n, d).
        bias: Their bias :math:`b`, of shape (hops, 1, d).
        scale: A factor :math:`s` for each row, of shape (hops, n, 1); 1 if None.

    Example:
        >>> unit_relu(torch.tensor([[[3.0, 4.0]], [[-1.0, 0.0]]]), torch.zeros(2, 1, 2)).tolist()
        [[[0.6000000238418579, 0.800000011920929]], [[0.0, 0.0]]]
    """
    scaled = products if scale is None else scale * products
    return F.relu(F.normalize(scaled + bias, dim=2))
