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

EMBEDDING_DIM, NUM_REFERENCES, BATCH = 64, 1024, 512
NUM_STEPS, CHECK_EVERY, HELD_OUT = 300, 10, 1 / 7
LEARNING_RATE, WEIGHT_DECAY, DROPOUT = 5e-3, 1e-4, 0.5
INITIAL_LOG_SCALE, MOST = 1.5, 1.5


class AffinityEnergy(EnergyTerm):
    r"""Minus the pointwise mutual information of own features :math:`x` and neighbourhood :math:`c`, by InfoNCE.

    A critic :math:`g(x, c) = a\,(Ux)^\top(Vc)` is trained to tell a node's own features from those of other nodes in
    its place, and its neighbourhood from those of other nodes (van den Oord et al. 2018), which learns

    .. math:: E(x, c) = -g(x, c) + \tfrac12 \log\overline{e^{g(x', c)}} + \tfrac12 \log\overline{e^{g(x, c')}}
        \approx -\log\frac{p(x \mid c)}{p(x)}

    with means over nodes :math:`x', c'` of the training graph. The neighbourhood is where hops 1 and 2 point, walks
    that return to the node taken out. Training stops where the loss on held-out nodes is least.

    Arguments:
        hops: The hops that are used.
        width: The number of projected feature columns.
    """

    name = "affinity"
    own_mean: Tensor
    context_mean: Tensor
    own_references: Tensor
    context_references: Tensor

    def __init__(self, hops: Sequence[int], width: int) -> None:
        super().__init__()
        self.places = [place for place, hop in enumerate(hops) if 1 <= hop <= 2]
        size = len(self.places) * width
        self.own = nn.Linear(width, EMBEDDING_DIM, bias=False)
        self.context = nn.Linear(size, EMBEDDING_DIM, bias=False)
        nn.init.normal_(self.own.weight, std=3 / math.sqrt(width))
        with torch.no_grad():  # to start with, the likeness of both
            self.context.weight.copy_(self.own.weight.repeat(1, len(self.places)) / len(self.places))
        self.log_scale = nn.Parameter(torch.tensor(INITIAL_LOG_SCALE - math.log(EMBEDDING_DIM) / 2))
        self.register_buffer("own_mean", torch.zeros(width))
        self.register_buffer("context_mean", torch.zeros(size))
        self.register_buffer("own_references", torch.zeros(NUM_REFERENCES, EMBEDDING_DIM))
        self.register_buffer("context_references", torch.zeros(NUM_REFERENCES, EMBEDDING_DIM))

    def fit(self, rows: TrainingRows) -> None:
        """Train the critic on nodes of the training graph that have neighbours."""
        with torch.no_grad():
            own, context = self._inputs(rows.latent)
            self.own_mean.copy_(own.mean(dim=0))
            self.context_mean.copy_(context.mean(dim=0))
            own, context = own - self.own_mean, context - self.context_mean
        order = rows.rng.permutation(np.flatnonzero(rows.latent.log_degree.cpu().numpy() > 0))
        count = max(int(HELD_OUT * len(order)), min(len(order), 5))
        held_out, trained = (torch.from_numpy(part).to(own.device) for part in (order[:count], order[count:]))
        if len(trained) > 1:
            self._train(own, context, trained, held_out, rows)
        with torch.no_grad():
            some = torch.from_numpy(np.resize(order, NUM_REFERENCES) if len(order) else np.zeros(NUM_REFERENCES, int))
            self.own_references.copy_(self.own(own[some]))
            self.context_references.copy_(self.context(context[some]))

    def forward(self, latent: Latent) -> Tensor:
        """The energy of each row."""
        own, context = self._inputs(latent)
        x, c = self.own(own - self.own_mean), self.context(context - self.context_mean)
        scale, size = self.log_scale.exp(), math.log(NUM_REFERENCES)
        others = torch.logsumexp(scale * c @ self.own_references.T, dim=1)
        elsewhere = torch.logsumexp(scale * x @ self.context_references.T, dim=1)
        energy: Tensor = (others + elsewhere) / 2 - size - scale * (x * c).sum(dim=1)
        return energy

    def weight(self, spread: float, homophily: float) -> float:
        """As much as it spreads: where the critic tells nothing apart, every pair gets the same energy."""
        return min(spread, MOST)

    def _inputs(self, batch: HopBatch) -> tuple[Tensor, Tensor]:
        hops = [batch.hops[place] for place in self.places]
        if len(hops) > 1:
            hops[1] = hops[1] - batch.returning[:, None] * batch.hops[0]
        return batch.directions(0), torch.cat([F.normalize(hop, dim=1, eps=1e-8) for hop in hops], dim=1)

    def _logits(self, own: Tensor, context: Tensor) -> Tensor:
        """The critic of each pair, of shape (own, context)."""
        logits: Tensor = self.log_scale.exp() * self.own(own) @ self.context(context).T
        return logits

    def _train(self, own: Tensor, context: Tensor, trained: Tensor, held_out: Tensor, rows: TrainingRows) -> None:
        optimizer = torch.optim.Adam(self.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
        best, least = [parameter.detach().clone() for parameter in self.parameters()], math.inf
        generator = rows.generator
        for step in range(1, NUM_STEPS + 1):
            chosen = trained[torch.randperm(len(trained), generator=generator, device=trained.device)[:BATCH]]
            logits = self._logits(_dropped(own[chosen], generator), _dropped(context[chosen], generator))
            target = torch.arange(len(chosen), device=trained.device)
            loss = F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % CHECK_EVERY == 0:
                with torch.no_grad():
                    some = held_out[:BATCH]
                    right = self._logits(own[some], context[some]).diagonal()
                    wrong = self._logits(own[chosen], context[some])
                    missed = (torch.logsumexp(wrong, dim=0) - right).mean().item()
                if missed < least:
                    best, least = [parameter.detach().clone() for parameter in self.parameters()], missed
        with torch.no_grad():
            for parameter, kept in zip(self.parameters(), best, strict=True):
                parameter.copy_(kept)


def _dropped(values: Tensor, generator: torch.Generator) -> Tensor:
    """Dropout whose randomness is passed in."""
    kept = torch.rand(values.shape, generator=generator, device=values.device) >= DROPOUT
    return values * kept / (1 - DROPOUT)
