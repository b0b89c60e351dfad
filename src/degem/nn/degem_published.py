"""Modules of the published DeGEM: the multi-hop encoder and its ablation, the energy head, the critic."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from degem.nn.degem import unit_relu
from degem.ops.langevin import LangevinSettings, langevin_along


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

    def forward(self, products: Tensor) -> Tensor:
        """Latents of shape (n, d) from the products of the hops with the projection, of shape (L + 1, n, d)."""
        active = F.dropout(unit_relu(products, self.hop_bias), self.dropout, self.training)
        return F.relu(self.fuse(active.transpose(0, 1).flatten(1)))


class OneLayerEncoder(nn.Module):
    r"""One graph convolution, :math:`h = \mathrm{ReLU}(X^{(1)} W + b)`: the ablation's stand-in for the multi-hop one.

    Arguments:
        in_dim: The number of feature columns :math:`r`.
        latent_dim: The size :math:`d` of the latent.
    """

    def __init__(self, in_dim: int, latent_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_dim, latent_dim)
        self.hops = range(1, 2)

    @property
    def projection(self) -> Tensor:
        """The weights that the first hop is multiplied with, of shape (1, r, d)."""
        return self.linear.weight.T[None]

    def forward(self, products: Tensor) -> Tensor:
        """Latents of shape (n, d) from the product of the first hop with the projection, of shape (1, n, d)."""
        return F.relu(products.squeeze(0) + self.linear.bias)


class MLPEnergy(nn.Module):
    r"""A two-layer energy head :math:`f(h, s) = w^\top \mathrm{ReLU}(W [h \| \rho s] + b) + b'`.

    Arguments:
        latent_dim: The size :math:`d` of the latent.
        hidden_dim: The width of the hidden layer.
        condition_weight: The weight :math:`\rho` of the summary; 0 leaves it out (no conditional energy).
        batch_norm: BatchNorm after the ReLU, as the authors' release has it: energies are then taken in training mode,
            chains move in evaluation mode.
        dropout: The dropout probability after that.
    """

    def __init__(
        self,
        latent_dim: int,
        hidden_dim: int = 64,
        *,
        condition_weight: float = 1.0,
        batch_norm: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.condition_weight, self.dropout = condition_weight, dropout
        self.hidden = nn.Linear(latent_dim * (2 if condition_weight else 1), hidden_dim)
        self.norm = nn.BatchNorm1d(hidden_dim) if batch_norm else None
        self.out = nn.Linear(hidden_dim, 1)

    def forward(self, latents: Tensor, summary: Tensor) -> Tensor:
        """Energies of shape (n,)."""
        active = F.relu(self._hidden(latents, summary))
        if self.norm is not None:
            active = self.norm(active)
        energies: Tensor = self.out(F.dropout(active, self.dropout, self.training)).squeeze(1)
        return energies

    @torch.no_grad()
    def gradient(self, latents: Tensor, summary: Tensor) -> Tensor:
        r"""The gradient :math:`\nabla_h f = W_h^\top (w \odot 1[z > 0])` in evaluation mode: two small products."""
        active = self._hidden(latents, summary) > 0
        return (active * self._slope()) @ self.hidden.weight[:, : latents.shape[1]]

    @torch.no_grad()
    def sample(
        self, positions: Tensor, summary: Tensor, settings: LangevinSettings, generator: torch.Generator
    ) -> Tensor:
        r"""Chains moved :math:`K` Langevin steps in evaluation mode.

        The energy changes only along the rows of :math:`W_h`, so chains walk in that space of 64 dimensions, not of
        :math:`d`: see :func:`~degem.ops.langevin.langevin_along`.
        """
        dim = positions.shape[1]
        basis, mixing = torch.linalg.qr(self.hidden.weight[:, :dim].T)  # z = mixingᵀ u + bias with u = basisᵀ h
        bias, pull = self._bias(summary, dim), torch.mul(mixing, self._slope()).T.contiguous()

        def gradient(u: Tensor) -> Tensor:
            hidden = torch.addmm(bias, u, mixing)
            torch.gt(hidden, 0, out=hidden)
            return torch.mm(hidden, pull)

        return langevin_along(basis, positions, gradient, settings, generator)

    def _hidden(self, latents: Tensor, summary: Tensor) -> Tensor:
        dim = latents.shape[1]
        return F.linear(latents, self.hidden.weight[:, :dim], self._bias(summary, dim))

    def _bias(self, summary: Tensor, dim: int) -> Tensor:
        """The bias of the hidden layer with the part that the summary adds, the same for every latent."""
        bias: Tensor = self.hidden.bias
        return bias + self.condition_weight * (self.hidden.weight[:, dim:] @ summary) if self.condition_weight else bias

    def _slope(self) -> Tensor:
        """The weight of each active hidden unit, with BatchNorm in evaluation mode folded in."""
        slope: Tensor = self.out.weight[0]
        if self.norm is None:
            return slope
        variance = torch.as_tensor(self.norm.running_var)
        return slope * self.norm.weight / torch.sqrt(variance + self.norm.eps)


class Discriminator(nn.Module):
    r"""The bilinear critic of Deep Graph Infomax: logits :math:`h^\top W s + b`.

    Arguments:
        latent_dim: The size :math:`d` of the latent.
        bias: Whether there is a bias :math:`b`, as the authors' release has.
    """

    def __init__(self, latent_dim: int, *, bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(latent_dim, latent_dim))
        self.bias = nn.Parameter(torch.zeros(1)) if bias else None
        nn.init.xavier_uniform_(self.weight)

    def forward(self, latents: Tensor, summary: Tensor) -> Tensor:
        """Logits of shape (n,)."""
        logits = latents @ (self.weight @ summary)
        return logits if self.bias is None else logits + self.bias
