"""Whether a node's own features and its neighbourhood belong together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from degem.detectors.degem.energies.base import EnergyTerm, TrainingRows
from degem.detectors.degem.hop_batch import HopBatch, Latent
from degem.nn.dropout import dropout

NUM_CRITICS, EMBEDDING_DIM, NUM_REFERENCES, BATCH = 3, 64, 1024, 256
NUM_STEPS, CHECK_EVERY, PATIENCE, HELD_OUT, MAX_HELD_OUT = 200, 10, 40, 1 / 7, 512
LEARNING_RATE, WEIGHT_DECAY, DROPOUT = 5e-3, 1e-4, 0.3
INITIAL_LOG_SCALE, MOST = 1.5, 1.5
LEAST_LEFT = 1e-3  # of a hop: where all walks return, what is left of it is rounding noise and has no direction


class Critics(nn.Module):
    r"""How well own features :math:`x` go with a neighbourhood :math:`c`: :math:`g_k(x, c) = a_k\,(U_kx)^\top(V_kc)`.

    To start with it is the likeness of both. Critics :math:`k` differ in where they start, and in what they are shown.

    Arguments:
        width: The number of projected feature columns.
        num_hops: The number of hops that make a neighbourhood.
    """

    own_references: Tensor
    context_references: Tensor

    def __init__(self, width: int, num_hops: int) -> None:
        super().__init__()
        own = torch.randn(NUM_CRITICS, width, EMBEDDING_DIM) * 3 / math.sqrt(width)
        self.own = nn.Parameter(own)
        self.context = nn.Parameter(own.repeat(1, num_hops, 1) / num_hops)
        start = INITIAL_LOG_SCALE - math.log(EMBEDDING_DIM) / 2
        self.log_scale = nn.Parameter(torch.full((NUM_CRITICS, 1, 1), start))
        self.register_buffer("own_references", torch.zeros(NUM_CRITICS, NUM_REFERENCES, EMBEDDING_DIM))
        self.register_buffer("context_references", torch.zeros(NUM_CRITICS, NUM_REFERENCES, EMBEDDING_DIM))

    def logits(self, own: Tensor, context: Tensor) -> Tensor:
        """Each critic of each pair, of shape (critics, own, context)."""
        logits: Tensor = self.log_scale.exp() * (own @ self.own) @ (context @ self.context).mT
        return logits

    def energies(self, own: Tensor, context: Tensor) -> Tensor:
        """Each critic's energy of each row, of shape (critics, n), beside others in its place and elsewhere."""
        x, c, scale = own @ self.own, context @ self.context, self.log_scale.exp()
        others = torch.logsumexp(scale * c @ self.own_references.mT, dim=2)
        elsewhere = torch.logsumexp(scale * x @ self.context_references.mT, dim=2)
        energies: Tensor = (others + elsewhere) / 2 - math.log(NUM_REFERENCES) - (scale * x * c).sum(dim=2)
        return energies

    def train_on(self, own: Tensor, context: Tensor, trained: Tensor, held_out: Tensor, rng: torch.Generator) -> None:
        """Tell the right pairs of rows from the wrong ones; what is kept is best on rows that are held out."""
        optimizer = torch.optim.Adam(self.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
        least = torch.full_like(self.log_scale, math.inf)
        best, best_step = [parameter.detach().clone() for parameter in self.parameters()], 0
        for step in range(1, NUM_STEPS + 1):
            draws = [torch.randperm(len(trained), generator=rng, device=trained.device) for _ in range(NUM_CRITICS)]
            chosen = trained[torch.stack(draws)[:, :BATCH]]
            logits = self.logits(dropout(own[chosen], DROPOUT, rng), dropout(context[chosen], DROPOUT, rng))
            target = torch.arange(chosen.shape[1], device=trained.device).repeat(NUM_CRITICS)
            both = [F.cross_entropy(pairs.flatten(0, 1), target) for pairs in (logits, logits.mT)]
            optimizer.zero_grad()
            (NUM_CRITICS * (both[0] + both[1])).backward()
            optimizer.step()
            if step % CHECK_EVERY == 0:
                with torch.no_grad():
                    right = self.logits(own[held_out], context[held_out]).diagonal(dim1=1, dim2=2)
                    others = torch.logsumexp(self.logits(own[chosen], context[held_out]), dim=1)
                missed = (others - right).mean(dim=1)[:, None, None]
                better, least = missed < least, torch.minimum(missed, least)
                best = [torch.where(better, now, then) for now, then in zip(self.parameters(), best, strict=True)]
                best_step = step if better.any() else best_step
                if step - best_step >= PATIENCE:
                    break
        with torch.no_grad():
            for parameter, kept in zip(self.parameters(), best, strict=True):
                parameter.copy_(kept)


class AffinityEnergy(EnergyTerm):
    r"""Minus the pointwise mutual information of own features :math:`x` and neighbourhood :math:`c`, by InfoNCE.

    A critic :math:`g(x, c)` is trained to tell a node's own features from those of other nodes in its place, and its
    neighbourhood from those of other nodes (van den Oord et al. 2018), which learns

    .. math:: E(x, c) = -g(x, c) + \tfrac12 \log\overline{e^{g(x', c)}} + \tfrac12 \log\overline{e^{g(x, c')}}
        \approx -\log\frac{p(x \mid c)}{p(x)}

    with means over nodes :math:`x', c'` of the training graph; the energy is the mean of three critics'. The
    neighbourhood is where hops 1 and 2 point, walks that return to the node taken out. Training stops where the loss on
    held-out nodes is least.

    Arguments:
        hops: The hops that are used.
        width: The number of projected feature columns.
    """

    name = "affinity"
    own_mean: Tensor
    context_mean: Tensor

    def __init__(self, hops: Sequence[int], width: int) -> None:
        super().__init__()
        self.hop_indices = [index for index, hop in enumerate(hops) if 1 <= hop <= 2]
        self.critics = Critics(width, len(self.hop_indices))
        self.register_buffer("own_mean", torch.zeros(width))
        self.register_buffer("context_mean", torch.zeros(len(self.hop_indices) * width))

    def fit(self, rows: TrainingRows) -> None:
        """Train the critics on nodes of the training graph that have neighbours."""
        with torch.no_grad():
            own, context = self._inputs(rows.latent)
            self.own_mean.copy_(own.mean(dim=0))
            self.context_mean.copy_(context.mean(dim=0))
            own, context = own - self.own_mean, context - self.context_mean
        order = rows.rng.permutation(np.flatnonzero(rows.latent.log_degree.cpu().numpy() > 0))
        count = max(int(HELD_OUT * len(order)), min(len(order), 5))
        held_out, trained = (torch.from_numpy(part).to(own.device) for part in (order[:count], order[count:]))
        sample = torch.from_numpy(np.resize(order, NUM_REFERENCES) if len(order) else np.zeros(NUM_REFERENCES, int))
        if len(trained) > 1:
            self.critics.train_on(own, context, trained, held_out[:MAX_HELD_OUT], rows.generator)
        with torch.no_grad():
            self.critics.own_references.copy_(own[sample] @ self.critics.own)
            self.critics.context_references.copy_(context[sample] @ self.critics.context)

    def forward(self, latent: Latent) -> Tensor:
        """The energy of each row."""
        own, context = self._inputs(latent)
        own, context = own - self.own_mean, context - self.context_mean
        return self.critics.energies(own, context).mean(dim=0)

    def weight(self, spread: float, homophily: float) -> float:
        """As much as it spreads, up to 1.5: a critic that tells nothing apart gives every pair one energy."""
        return min(spread, MOST)

    def _inputs(self, batch: HopBatch) -> tuple[Tensor, Tensor]:
        hops = [batch.hops[index] for index in self.hop_indices]
        floors = [LEAST_LEFT * hop.norm(dim=1, keepdim=True) + 1e-8 for hop in hops]
        if len(hops) > 1:
            hops[1] = hops[1] - batch.returning[:, None] * batch.hops[0]
        directions = [
            hop / hop.norm(dim=1, keepdim=True).clamp_min(floor) for hop, floor in zip(hops, floors, strict=True)
        ]
        return batch.directions(0), torch.cat(directions, dim=1)
