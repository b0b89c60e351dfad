"""A graph attention network whose attention tells inliers from outliers."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from degem.ops.adjacency import Edges, weighted_sum
from degem.ops.features import sparse_csr


class Attended(NamedTuple):
    """The output of a layer and the attention of each of its heads, before the sigmoid, of shape (n, heads)."""

    output: Tensor
    attention: Tensor


class OODGATLayer(nn.Module):
    r"""Attention that passes little between inliers and outliers (Song & Wang 2022).

    .. math:: a_i = q^\top W x_i, \quad
        w_{ij} = \operatorname{softmax}_j (1 - |\sigma(a_i) - \sigma(a_j)|), \quad y_i = \sum_j w_{ij} W x_j + b

    The sum runs over neighbours and the node itself; :math:`\sigma(a_i)` is how much of an outlier node :math:`i` is.

    Arguments:
        in_dim: The width of the input.
        out_dim: The width of each head's output.
        num_heads: The number of heads.
        concat: Whether heads are put side by side, or else averaged.
        dropout: The share of attention weights dropped in training.
    """

    def __init__(self, in_dim: int, out_dim: int, *, num_heads: int, concat: bool, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(in_dim, num_heads * out_dim, bias=False)
        self.query = nn.Parameter(torch.empty(num_heads, out_dim))
        self.bias = nn.Parameter(torch.zeros(num_heads * out_dim if concat else out_dim))
        self.concat = concat
        self.dropout = nn.Dropout(dropout)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.xavier_uniform_(self.query)

    def forward(self, x: Tensor, edges: Edges) -> Attended:
        """The layer's output, and its attention."""
        values = self.linear(x).unflatten(1, self.query.shape)
        attention = (values * self.query).sum(dim=2)
        likeness = 1 - (attention.sigmoid()[edges.receivers] - attention.sigmoid()[edges.senders]).abs()
        heads = [
            self._head(edges, likeness[:, head].exp(), values[:, head].contiguous()) for head in range(len(self.query))
        ]
        joined = torch.cat(heads, dim=1) if self.concat else torch.stack(heads).mean(dim=0)
        return Attended(joined + self.bias, attention)

    def _head(self, edges: Edges, unnormalised: Tensor, values: Tensor) -> Tensor:
        totals = weighted_sum(edges, unnormalised, values.new_ones(len(values), 1))
        return weighted_sum(edges, self.dropout(unnormalised / totals[edges.receivers, 0]), values)


class OODGATNetwork(nn.Module):
    """Two layers of :class:`OODGATLayer`; the second gives the logits.

    Arguments:
        num_features: The number of feature columns.
        hidden_dim: The width of each head of the first layer.
        num_classes: The number of classes.
        num_heads: The number of heads of both layers.
        dropout: The share of features and hidden units dropped in training.
        edge_dropout: The share of attention weights dropped in training.
    """

    def __init__(
        self,
        num_features: int,
        hidden_dim: int,
        num_classes: int,
        *,
        num_heads: int,
        dropout: float,
        edge_dropout: float,
    ) -> None:
        super().__init__()
        self.first = OODGATLayer(num_features, hidden_dim, num_heads=num_heads, concat=True, dropout=edge_dropout)
        self.second = OODGATLayer(
            hidden_dim * num_heads, num_classes, num_heads=num_heads, concat=False, dropout=edge_dropout
        )
        self.dropout = dropout

    def forward(self, features: Tensor, edges: Edges) -> tuple[Attended, Attended]:
        """Both layers; the output of the second are the logits."""
        first = self.first(_dropped(features, self.dropout if self.training else 0.0), edges)
        hidden = functional.dropout(functional.elu(first.output), self.dropout, self.training)
        return first, self.second(hidden, edges)


def _dropped(features: Tensor, share: float) -> Tensor:
    """Dropout on features of either layout; the zeros of sparse ones stay what they are."""
    if features.layout == torch.sparse_csr:
        values = functional.dropout(features.values(), share)
        return sparse_csr(features.crow_indices(), features.col_indices(), values, features.shape)
    return functional.dropout(features, share)
