"""A graph network that reads an energy off each of its layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from degem.ops.adjacency import symmetric_product
from degem.ops.features import sparse_csr


class GPREnergy(nn.Module):
    r"""Node energies :math:`\sum_l \gamma_l (w_l^\top h^{(l)} + b_l)` of every layer (Gong & Sun 2024).

    :math:`h^{(0)} = XW + b` and :math:`h^{(l)} = \phi(\hat A (h^{(l-1)} W_l + b_l))` with the normalised adjacency
    :math:`\hat A`. The weights :math:`\gamma` are learnt from those of a PageRank with teleport probability 0.1.

    Arguments:
        num_features: The number of feature columns.
        hidden_dim: The width of every layer.
        num_layers: The number of convolutions.
        dropout: The share of hidden units dropped in training.
        edge_dropout: The share of entries of the adjacency dropped in training.
        slope: The slope of :math:`\phi` below zero; 0 is a ReLU.
    """

    def __init__(
        self,
        num_features: int,
        hidden_dim: int,
        *,
        num_layers: int,
        dropout: float,
        edge_dropout: float,
        slope: float = 0.0,
    ) -> None:
        super().__init__()
        self.dropout, self.edge_dropout, self.slope = dropout, edge_dropout, slope
        self.first = nn.Linear(num_features, hidden_dim)
        nn.init.xavier_uniform_(self.first.weight)
        self.layers = nn.ModuleList(nn.Linear(hidden_dim, hidden_dim) for _ in range(num_layers))
        self.energies = nn.ModuleList(nn.Linear(hidden_dim, 1) for _ in range(num_layers + 1))
        self.layer_weights = nn.Parameter(
            torch.tensor([*(0.1 * 0.9**layer for layer in range(num_layers)), 0.9**num_layers])
        )

    def project(self, features: Tensor) -> Tensor:
        """The input of the graph layers, of shape (n, hidden)."""
        projected: Tensor = self.first(features)
        return projected

    def forward(self, projected: Tensor, adjacency: Tensor) -> Tensor:
        """Energies of shape (n,) from projected features and the normalised adjacency, sparse CSR and symmetric."""
        dropped = self._dropped(adjacency) if self.training and self.edge_dropout else None
        h = projected
        energy: Tensor = self.layer_weights[0] * self.energies[0](h)
        for index, layer in enumerate(self.layers, start=1):
            h = layer(h)
            h = functional.leaky_relu(symmetric_product(adjacency, h) if dropped is None else dropped @ h, self.slope)
            energy = energy + self.layer_weights[index] * self.energies[index](h)
            h = functional.dropout(h, self.dropout, self.training)
        return energy.squeeze(1)

    def _dropped(self, adjacency: Tensor) -> Tensor:
        values = functional.dropout(adjacency.values(), self.edge_dropout)
        return sparse_csr(adjacency.crow_indices(), adjacency.col_indices(), values, adjacency.shape)
