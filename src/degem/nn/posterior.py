"""The graph posterior network: class densities on latents, diffused over the graph as evidence."""

from __future__ import annotations

import math
from typing import Any

import torch
from normflows.flows import Radial
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import APPNP

from degem.ops.adjacency import symmetric_product

LOG_EVIDENCE_BOUND = 30.0  # the authors'; keeps exp() finite


class RadialDensity(nn.Module):
    r"""The log-density of a stack of radial flows onto a standard normal (Rezende & Mohamed 2015).

    Arguments:
        dim: The dimension of the latents.
        num_layers: The number of radial flows.

    Example:
        >>> RadialDensity(4, num_layers=2)(torch.zeros(3, 4)).shape
        torch.Size([3])
    """

    def __init__(self, dim: int, *, num_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Radial((dim,)) for _ in range(num_layers))

    def forward(self, z: Tensor) -> Tensor:
        """The log-density of each row."""
        log_determinant = z.new_zeros(len(z))
        for layer in self.layers:
            z, change = layer(z)
            log_determinant = log_determinant + change
        return log_determinant - 0.5 * (z.square().sum(dim=1) + z.shape[1] * math.log(2 * math.pi))


class GraphPosteriorNetwork(nn.Module):
    r"""Features → latents → per-class densities → evidence → diffusion → Dirichlet (Stadler et al. 2021).

    .. math:: \beta_{ic} = p_c \, q_c(z_i) \, (4\pi)^{d/2}, \quad
        \tilde\beta = \sum_k \Pi_k \beta, \quad \alpha_i = 1 + \tilde\beta_i

    :math:`q_c` are radial flows and :math:`\Pi` is personalised PageRank with teleport probability :math:`\tau`.

    Arguments:
        num_features: The number of feature columns.
        hidden_dim: The width of the hidden layer.
        latent_dim: The dimension :math:`d` of the latents.
        class_shares: The share :math:`p_c` of each class among the training nodes.
        num_flows: Radial flows a class.
        num_steps: Power iterations of the PageRank.
        teleport: The teleport probability :math:`\tau`.
        dropout: The share of hidden units dropped in training.
    """

    class_shares: Tensor

    def __init__(
        self,
        num_features: int,
        hidden_dim: int,
        latent_dim: int,
        class_shares: Tensor,
        *,
        num_flows: int,
        num_steps: int,
        teleport: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.hidden = nn.Linear(num_features, hidden_dim)
        self.dropout = nn.Dropout(dropout)
        self.latent = nn.Linear(hidden_dim, latent_dim)
        self.flows = nn.ModuleList(RadialDensity(latent_dim, num_layers=num_flows) for _ in class_shares)
        self.diffusion = _APPNP(num_steps, teleport, normalize=False)
        self.register_buffer("class_shares", class_shares)

    def encode(self, features: Tensor) -> Tensor:
        """The latents, of shape (n, d); a node's own features only."""
        latents: Tensor = self.latent(self.dropout(torch.relu(self.hidden(features))))
        return latents

    def forward(self, features: Tensor, adjacency: Tensor) -> Tensor:
        """The Dirichlet parameters α, of shape (n, C)."""
        z = self.encode(features)
        # Recomputed in backward: the flows' intermediates of all classes at once do not fit a large graph.
        densities = [checkpoint(flow, z, use_reentrant=False) for flow in self.flows]
        scale = 0.5 * z.shape[1] * math.log(4 * math.pi)
        log_evidence = torch.stack(densities, dim=1) + self.class_shares.log() + scale
        evidence = log_evidence.clamp(-LOG_EVIDENCE_BOUND, LOG_EVIDENCE_BOUND).exp()
        diffused: Tensor = self.diffusion(evidence, adjacency)
        return 1 + diffused


class _APPNP(APPNP):  # type: ignore[misc]
    """Torch-geometric's diffusion on an adjacency that is normalised already and known to be symmetric."""

    def message_and_aggregate(self, adj_t: Tensor, x: Any) -> Tensor:
        return symmetric_product(adj_t, x)
