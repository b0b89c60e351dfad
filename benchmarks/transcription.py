"""The paper's Algorithm 1 written down line by line, at its settings: what the library's speed is measured against.

Chen et al., *Decoupled Graph Energy-based Model for Node Out-of-Distribution Detection on Heterophilic Graphs*, ICLR
2025. Full batch, dense hop features, the corrupted graph propagated anew in every epoch, Langevin sampling through
autograd. Where the paper is silent it does what the authors' program does: hops are normalised, then ReLU and dropout,
and the energy head has BatchNorm and dropout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from degem import Graph


@dataclass(frozen=True)
class Settings:
    """The paper's settings; the symbols are those of its Algorithm 1 and Appendix."""

    num_hops: int = 5  # L
    latent_dim: int = 512  # d
    num_epochs: int = 200  # E
    self_weight: float = 0.5  # β
    condition_weight: float = 1.0  # ρ
    readout_weight: float = 1.0  # γ
    classification_weight: float = 0.1  # ξ
    energy_penalty: float = 1.0  # c
    langevin_steps: int = 20  # K
    langevin_step_size: float = 1.0  # λ
    langevin_noise: float = 0.005  # σ
    fresh_share: float = 0.05
    head_dim: int = 64
    dropout: float = 0.5
    learning_rate: float = 1e-3
    weight_decay: float = 5e-4


def propagation_matrix(adjacency: sp.csr_array, self_weight: float) -> sp.csr_array:
    """S = βI + D^-½ A D^-½."""
    degrees = np.asarray(adjacency.sum(axis=1))
    scale = sp.diags_array(np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1)), 0))
    identity = sp.eye_array(adjacency.shape[0])
    return sp.csr_array(self_weight * identity + scale @ adjacency @ scale, dtype=np.float32)


def hops_of(matrix: sp.csr_array, features: NDArray[np.float32], num_hops: int) -> list[Tensor]:
    """X, SX, …, S^L X."""
    hops = [features]
    for _ in range(num_hops):
        hops.append(matrix @ hops[-1])
    return [torch.from_numpy(hop) for hop in hops]


def dense_features(graph: Graph) -> NDArray[np.float32]:
    """Row-normalised features, dense."""
    features = graph.features
    dense = np.array(features.toarray() if isinstance(features, sp.csr_array) else features, dtype=np.float32)
    dense /= np.maximum(np.abs(dense).sum(axis=1, keepdims=True), 1e-12)
    return dense


class Model(nn.Module):
    """Encoder g, discriminator D, energy head f and classifier I."""

    def __init__(self, in_dim: int, num_classes: int, settings: Settings) -> None:
        super().__init__()
        dim = settings.latent_dim
        self.settings = settings
        self.hops = nn.ModuleList(nn.Linear(in_dim, dim) for _ in range(settings.num_hops + 1))
        self.encoder = nn.Linear((settings.num_hops + 1) * dim, dim)
        self.discriminator = nn.Parameter(nn.init.xavier_uniform_(torch.empty(dim, dim)))
        self.head_in = nn.Linear(2 * dim, settings.head_dim)
        self.head_norm = nn.BatchNorm1d(settings.head_dim)
        self.head_out = nn.Linear(settings.head_dim, 1)
        self.classifier = nn.Linear(dim, num_classes)

    def encode(self, hops: list[Tensor]) -> Tensor:
        """Latents h."""
        projected = [F.normalize(layer(hop), dim=1) for layer, hop in zip(self.hops, hops, strict=True)]
        projected = [F.dropout(F.relu(part), self.settings.dropout, self.training) for part in projected]
        return F.relu(self.encoder(torch.cat(projected, dim=1)))

    def energy(self, latents: Tensor, summary: Tensor) -> Tensor:
        """The energy f(h, s)."""
        condition = (self.settings.condition_weight * summary).expand(len(latents), -1)
        hidden = F.relu(self.head_in(torch.cat([latents, condition], dim=1)))
        hidden = F.dropout(self.head_norm(hidden), 0.5, self.training)
        energies: Tensor = self.head_out(hidden).squeeze(1)
        return energies

    def head_parameters(self) -> list[nn.Parameter]:
        """The parameters of f."""
        return [*self.head_in.parameters(), *self.head_norm.parameters(), *self.head_out.parameters()]


def readout(latents: Tensor, energies: Tensor, weight: float) -> Tensor:
    """The summary s under the node weights γ p̄ + (1 − γ)/N."""
    share = torch.softmax(-energies, dim=0)
    return ((weight * share + (1 - weight) / len(latents)).unsqueeze(1) * latents).sum(dim=0)


def energy_loss(data: Tensor, chains: Tensor, penalty: float) -> Tensor:
    """L_ebm."""
    return data.mean() - chains.mean() + penalty * ((data**2).mean() + (chains**2).mean())


def contrastive_loss(model: Model, latents: Tensor, corrupted: Tensor, summary: Tensor) -> Tensor:
    """L_cl: Deep Graph Infomax."""
    real, fake = latents @ model.discriminator @ summary, corrupted @ model.discriminator @ summary
    return (
        F.binary_cross_entropy_with_logits(real, torch.ones_like(real))
        + F.binary_cross_entropy_with_logits(fake, torch.zeros_like(fake))
    ) / 2


def sample(model: Model, chains: Tensor, summary: Tensor) -> Tensor:
    """K Langevin steps through autograd, the head in evaluation mode."""
    settings = model.settings
    training = model.training
    model.eval()
    for _ in range(settings.langevin_steps):
        chains = chains.detach().requires_grad_()
        (slope,) = torch.autograd.grad(model.energy(chains, summary).sum(), chains)
        noise = settings.langevin_noise * torch.randn_like(chains)
        chains = chains - settings.langevin_step_size * slope + noise
    model.train(training)
    return chains.detach()


def fit(
    graph: Graph,
    train_nodes: NDArray[np.int64],
    settings: Settings | None = None,
    *,
    seed: int = 0,
    on_epoch: Callable[[int], None] = lambda epoch: None,
) -> tuple[Model, Tensor]:
    """Train on a graph; the model and the final summary s."""
    settings = settings or Settings()
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    train = torch.from_numpy(train_nodes)
    labels = torch.from_numpy(np.array(graph.labels))[train]
    model = Model(graph.num_features, graph.num_classes, settings)
    features, matrix = dense_features(graph), propagation_matrix(graph.adjacency, settings.self_weight)
    hops = hops_of(matrix, features, settings.num_hops)
    head_parameters = model.head_parameters()
    chosen = {id(parameter) for parameter in head_parameters}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
    rate, decay = settings.learning_rate, settings.weight_decay
    head_optimizer = torch.optim.Adam(head_parameters, lr=rate, weight_decay=decay)
    optimizer = torch.optim.Adam(rest, lr=rate, weight_decay=decay)
    buffer = 2 * torch.rand(2 * len(train), settings.latent_dim) - 1
    energies = torch.zeros(graph.num_nodes)
    summary = torch.zeros(settings.latent_dim)
    for epoch in range(settings.num_epochs):
        model.train()
        latents = model.encode(hops)
        corrupted = model.encode(hops_of(matrix, features[rng.permutation(graph.num_nodes)], settings.num_hops))

        fixed = latents.detach()
        previous = readout(fixed, energies, settings.readout_weight)
        rows = torch.randperm(len(buffer))[: len(train)]
        fresh = torch.rand(len(train), 1) < settings.fresh_share
        starts = torch.where(fresh, torch.rand(len(train), settings.latent_dim), buffer[rows])
        chains = sample(model, starts, previous)
        buffer[rows] = chains

        loss = energy_loss(
            model.energy(fixed[train], previous), model.energy(chains, previous), settings.energy_penalty
        )
        head_optimizer.zero_grad()
        loss.backward()
        head_optimizer.step()

        with torch.no_grad():
            energies = model.energy(fixed, previous)
        summary = readout(latents, energies, settings.readout_weight)
        loss = contrastive_loss(model, latents, corrupted, summary)
        loss = loss + settings.classification_weight * F.cross_entropy(model.classifier(latents[train]), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_epoch(epoch)
    return model, summary.detach()


@torch.no_grad()
def score(model: Model, summary: Tensor, graph: Graph) -> NDArray[np.float32]:
    """The energy of every node: higher = more OOD."""
    model.eval()
    settings = model.settings
    matrix = propagation_matrix(graph.adjacency, settings.self_weight)
    energies = model.energy(model.encode(hops_of(matrix, dense_features(graph), settings.num_hops)), summary)
    return np.asarray(energies.numpy())
