"""The graph posterior network: class densities on latents, diffused over the graph as evidence."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import APPNP

from degem.extras import needs_extra
from degem.ops.adjacency import symmetric_product

with needs_extra("bench", "GPN"):
    from normflows.flows import Radial

AT_ONCE = 1 << 20  # numbers that go through the flows together
LOG_EVIDENCE_BOUND = 30.0  # the authors'; keeps exp() finite


class RadialDensities(nn.Module):
    r"""The log-densities of stacks of radial flows onto a standard normal, one stack a class (Rezende & Mohamed 2015).

    All classes go through a layer in one batch. Some nodes at a time go through all layers, and again in backward: what
    lies between the layers then stays in the processor's cache, and that of all nodes would not fit in memory.

    Arguments:
        dim: The dimension of the latents.
        num_classes: The number of stacks.
        num_layers: The number of radial flows of each.
    """

    def __init__(self, dim: int, *, num_classes: int, num_layers: int) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.layers = nn.ModuleList(
            nn.ModuleList(Radial((dim,)) for _ in range(num_classes)) for _ in range(num_layers)
        )

    def forward(self, z: Tensor) -> Tensor:
        """The log-density of each row under each class."""
        layers = [_stacked(flows) for flows in self.layers]
        some = max(1, AT_ONCE // (self.num_classes * z.shape[1]))
        return torch.cat([checkpoint(self._log_densities, layers, part, use_reentrant=False) for part in z.split(some)])

    def _log_densities(self, layers: list[dict[str, Tensor]], z: Tensor) -> Tensor:
        z = z.expand(self.num_classes, *z.shape)
        log_determinant = z.new_zeros(z.shape[:2])
        for layer in layers:
            z, change = torch.vmap(self._radial)(layer, z)
            log_determinant = log_determinant + change
        log_normal = -0.5 * (z.square().sum(dim=2) + z.shape[2] * math.log(2 * math.pi))
        return (log_normal + log_determinant).t()

    def _radial(self, parameters: dict[str, Tensor], z: Tensor) -> tuple[Tensor, Tensor]:
        """One class's flow with these parameters: all flows differ in nothing else."""
        flow = next(self.layers[0].children())
        moved: tuple[Tensor, Tensor] = functional_call(flow, parameters, (z,))
        return moved


def _stacked(flows: nn.Module) -> dict[str, Tensor]:
    """The parameters of one layer, those of all classes together."""
    parameters = [dict(flow.named_parameters()) for flow in flows.children()]
    return {name: torch.stack([own[name] for own in parameters]) for name in parameters[0]}


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
        self.flows = RadialDensities(latent_dim, num_classes=len(class_shares), num_layers=num_flows)
        self.diffusion = _APPNP(num_steps, teleport, normalize=False)
        self.register_buffer("class_shares", class_shares)

    def encode(self, features: Tensor) -> Tensor:
        """The latents, of shape (n, d); a node's own features only."""
        latents: Tensor = self.latent(self.dropout(torch.relu(self.hidden(features))))
        return latents

    def forward(self, features: Tensor, adjacency: Tensor) -> Tensor:
        """The evidence of each node for each class, diffused, of shape (n, C)."""
        z = self.encode(features)
        scale = 0.5 * z.shape[1] * math.log(4 * math.pi)
        log_evidence = self.flows(z) + self.class_shares.log() + scale
        evidence = log_evidence.clamp(-LOG_EVIDENCE_BOUND, LOG_EVIDENCE_BOUND).exp()
        diffused: Tensor = self.diffusion(evidence, adjacency)
        return diffused


class _APPNP(APPNP):  # type: ignore[misc]
    """Torch-geometric's diffusion on an adjacency that is normalised already and known to be symmetric."""

    def message_and_aggregate(self, adj_t: Tensor, x: Any) -> Tensor:
        return symmetric_product(adj_t, x)
