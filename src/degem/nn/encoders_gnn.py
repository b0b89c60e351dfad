"""Graph neural networks, from the layers of torch-geometric."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import scipy.sparse as sp
import torch
from sklearn.preprocessing import normalize
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from degem.graph import Graph
from degem.ops.adjacency import gcn_adjacency, symmetric_product
from degem.ops.features import to_tensor

# Above this share of non-zero entries a dense product is faster: measured on Amazon-Photo (35 %) and Cora (1.3 %).
SPARSE_BELOW = 0.1


@dataclass(frozen=True)
class GraphTensors:
    """A graph as a network reads it.

    Arguments:
        features: The features, of shape (n, d₀), strided or sparse CSR.
        adjacency: The normalised adjacency with self-loops, sparse CSR.
    """

    features: Tensor
    adjacency: Tensor


def graph_tensors(graph: Graph, *, normalize_features: bool, device: str = "cpu") -> GraphTensors:
    """The tensors of a graph; nothing of the graph is changed.

    Arguments:
        graph: The graph.
        normalize_features: Whether rows of features are scaled to unit length.
        device: Where the tensors live.
    """
    features = feature_tensor(graph, normalize_features=normalize_features, device=device)
    return GraphTensors(features, gcn_adjacency(graph.adjacency, device))


def feature_tensor(graph: Graph, *, normalize_features: bool, device: str = "cpu") -> Tensor:
    """The features alone: sparse where that is faster.

    Rows have unit length, not unit sum. Weight decay and input steps are in units of a feature: a unit sum over many
    non-zeros leaves each so small that a network with the usual settings hardly trains.
    """
    features = graph.features
    if isinstance(features, sp.csr_array) and features.nnz > SPARSE_BELOW * features.shape[0] * features.shape[1]:
        features = features.toarray()
    return to_tensor(normalize(features) if normalize_features else features, device)


class GCN(nn.Module):
    r"""A graph convolutional network (Kipf & Welling 2017): :math:`H^{(l+1)} = \phi(\hat{A} H^{(l)} W^{(l)})`.

    Each hidden layer is convolution, batch norm (if asked for), ReLU, dropout; the last layer gives the logits.

    Arguments:
        num_features: The number of feature columns.
        hidden_dim: The width of the hidden layers.
        num_classes: The number of classes.
        num_layers: The number of convolutions, the last included.
        dropout: The share of hidden units dropped in training.
        batch_norm: Whether hidden layers are batch-normalised.

    Example:
        >>> network = GCN(4, 8, 3, num_layers=2, dropout=0.5, batch_norm=True)
        >>> adjacency = gcn_adjacency(sp.csr_array((5, 5), dtype="float32"))
        >>> [tuple(layer.shape) for layer in network.layers(torch.ones(5, 4), adjacency)]
        [(5, 8), (5, 3)]
    """

    def __init__(
        self,
        num_features: int,
        hidden_dim: int,
        num_classes: int,
        *,
        num_layers: int,
        dropout: float,
        batch_norm: bool,
    ) -> None:
        super().__init__()
        widths = [num_features, *[hidden_dim] * (num_layers - 1), num_classes]
        self.convolutions = nn.ModuleList(
            _GCNConv(into, out, normalize=False) for into, out in itertools.pairwise(widths)
        )
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(hidden_dim) if batch_norm else nn.Identity() for _ in range(num_layers - 1)
        )
        self.dropout = nn.Dropout(dropout)

    def layers(self, features: Tensor, adjacency: Tensor) -> list[Tensor]:
        """The output of every layer: hidden ones, then the logits."""
        outputs = []
        x = features
        for convolution, norm in zip(self.convolutions[:-1], self.norms, strict=True):
            x = self.dropout(torch.relu(norm(convolution(x, adjacency))))
            outputs.append(x)
        outputs.append(self.convolutions[-1](x, adjacency))
        return outputs

    def forward(self, features: Tensor, adjacency: Tensor) -> Tensor:
        """The logits, of shape (n, C)."""
        return self.layers(features, adjacency)[-1]


class _GCNConv(GCNConv):  # type: ignore[misc]
    """Torch-geometric's convolution on an adjacency that is normalised already and known to be symmetric."""

    def message_and_aggregate(self, adj_t: Tensor, x: Tensor) -> Tensor:
        return symmetric_product(adj_t, x)
