"""The encoder, trained by graph contrast and cross-entropy on rows of hop features."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from degem.detectors.degem.hop_batch import HopBatch
from degem.detectors.degem.hop_inputs import HopInputs
from degem.detectors.degem.model import DeGEMModel
from degem.ops.losses import infomax_loss

MAX_POOL = 50_000
MAX_CORRUPTIONS = 15


@dataclass(frozen=True)
class EncoderSettings:
    """Sizes of the encoder's steps; see :class:`~degem.DeGEM`."""

    num_epochs: int
    batch_size: int
    learning_rate: float
    classification_weight: float


@dataclass(frozen=True)
class Pool:
    """The nodes that training draws from: all of them, or a sample of a large graph that holds the training nodes.

    Arguments:
        nodes: The nodes, sorted.
        batch: All of them as the model sees them.
        train: Where the training nodes stand among them.
        labels: Their labels, −1 where unknown.
    """

    nodes: NDArray[np.int64]
    batch: HopBatch
    train: NDArray[np.int64]
    labels: NDArray[np.int64]


def draw_pool(
    inputs: HopInputs, train_nodes: NDArray[np.int64], labels: NDArray[np.int64], rng: np.random.Generator
) -> Pool:
    """A pool whose size does not grow with the graph beyond a point."""
    some_train = train_nodes
    if len(train_nodes) > MAX_POOL:
        one_a_class = np.unique(labels[train_nodes], return_index=True)[1]
        some_train = np.union1d(rng.choice(train_nodes, MAX_POOL, replace=False), train_nodes[one_a_class])
    nodes = np.arange(inputs.num_nodes)
    if inputs.num_nodes > MAX_POOL:
        nodes = np.union1d(rng.choice(inputs.num_nodes, MAX_POOL, replace=False), some_train)
    return Pool(nodes, inputs.batch(nodes), np.searchsorted(nodes, some_train), labels[nodes])


class EncoderTrainer:
    """Deep Graph Infomax and cross-entropy, in steps whose cost does not depend on the graph's size.

    The graph is corrupted anew each time about as many negatives were drawn as it has nodes.

    Arguments:
        model: The model to train, in place.
        inputs: Hop features of the training graph.
        pool: The nodes to draw from.
        settings: Sizes of the steps.
        seed: Seed of batches and permutations.
    """

    def __init__(self, model: DeGEMModel, inputs: HopInputs, pool: Pool, settings: EncoderSettings, seed: int) -> None:
        self.model, self.inputs, self.pool, self.settings, self.seed = model, inputs, pool, settings, seed
        self.labelled = pool.train[pool.labels[pool.train] >= 0]
        wanted = math.ceil(settings.num_epochs * settings.batch_size / inputs.num_nodes)
        corruptions = min(max(wanted, 1), MAX_CORRUPTIONS)
        self.refresh_every = math.ceil(max(settings.num_epochs, 1) / corruptions)
        trained = [model.encoder, model.contrast, *([] if model.classifier is None else [model.classifier])]
        self.optimizer = torch.optim.Adam(
            [parameter for module in trained for parameter in module.parameters()], lr=settings.learning_rate
        )
        self.round = -1
        self.negatives = pool.batch.select(slice(0, 0))

    def step(self, index: int) -> Mapping[str, float]:
        """One step on a batch of nodes, as many corrupted ones, and labelled ones."""
        if not self.model.training:
            self.model.train()
        rng = np.random.default_rng([self.seed, 0, index])
        nodes = _draw(np.arange(len(self.pool.nodes)), self.settings.batch_size, rng)
        labelled_nodes = _draw(self.labelled, self.settings.batch_size // 2, rng)
        corrupted = self._corrupted(index)
        drawn = self.pool.batch.select(np.concatenate([nodes, labelled_nodes]))
        latents = self.model.encode(drawn.joined(corrupted)).latents
        positive, labelled, negative = latents.split([len(nodes), len(labelled_nodes), len(corrupted.log_lengths)])
        critic, summary = self.model.contrast, positive.mean(dim=0)
        losses = {"contrast": 2 * infomax_loss(critic.logits(positive, summary), critic.logits(negative, summary))}
        if self.model.classifier is not None and self.settings.classification_weight:
            target = torch.from_numpy(self.pool.labels[labelled_nodes]).to(labelled.device)
            losses["classification"] = F.cross_entropy(self.model.classifier(labelled), target)
        weights = {"contrast": 1.0, "classification": self.settings.classification_weight}
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * remaining_rate(index / self.settings.num_epochs)
        self.optimizer.zero_grad()
        torch.stack([weights[name] * loss for name, loss in losses.items()]).sum().backward()
        self.optimizer.step()
        return {name: loss.item() for name, loss in losses.items()}

    def _corrupted(self, index: int) -> HopBatch:
        """This step's share of the negatives drawn at the last corruption."""
        (turn, position), size = divmod(index, self.refresh_every), self.settings.batch_size
        if turn != self.round:
            rng = np.random.default_rng([self.seed, 1, turn])
            nodes = rng.integers(0, self.inputs.num_nodes, size * self.refresh_every)
            self.negatives = self.inputs.corrupted(nodes, rng.permutation(self.inputs.num_nodes))
            self.round = turn
        return self.negatives.select(slice(position * size, (position + 1) * size))


def remaining_rate(done: float) -> float:
    """The share of the learning rate at a share of the steps: it falls over the last third, so that no leap lasts.

    Example:
        >>> remaining_rate(0.0), remaining_rate(0.5), round(remaining_rate(0.9), 2)
        (1.0, 1.0, 0.3)
    """
    return min(1.0, 3 * (1 - done))


def _draw(places: NDArray[np.int64], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Some of the places, or all where there are no more; with repeats only where they are rare."""
    return places if len(places) <= size else rng.choice(places, size, replace=len(places) > 5 * size)
