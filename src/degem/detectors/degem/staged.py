"""DeGEM's default: the encoder is trained first, by contrast; then the energies on its latents; no choice needs OOD."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from degem.checkpoint import Checkpoints
from degem.detectors.base import Scored
from degem.detectors.degem.hop_inputs import HopInputs
from degem.detectors.degem.staged_energies import (
    HeadSettings,
    HeadTrainer,
    fit_classifiers,
    fit_densities,
    replace_terms,
)
from degem.detectors.degem.staged_model import HopBatch, Latent, StagedModel, projection_size
from degem.detectors.degem.staged_trainer import EncoderSettings, EncoderTrainer, Pool, draw_pool, select
from degem.detectors.degem.terms import SMOOTHED
from degem.detectors.split import TrainingSet
from degem.graph import Graph
from degem.ops.features import Features, row_normalize
from degem.ops.homophily import excess_homophily, guessed_homophily, labelled_edges
from degem.ops.hop_rows import class_hop_means, hop_rows
from degem.ops.mapped import default_budget, release
from degem.ops.projection import fit_projection, sample_rows
from degem.ops.propagation import smooth_over_neighbours
from degem.seeding import seeded
from degem.training import History, OnProgress, one_thread, train

if TYPE_CHECKING:
    from degem.detectors.degem.detector import DeGEM

SPACING = (0, 1, 2, 3, 5, 10, 20, 50)
ENOUGH_EDGES, ENOUGH_LABELS, ENOUGH_GUESSES = 100, 3, 2000
SCORE_SMOOTHING, CLASS_SMOOTHING = (0.7, 8), (0.35, 1)  # weight of the neighbours, steps


@dataclasses.dataclass(frozen=True)
class Known:
    """The terms of a graph's nodes, before smoothing."""

    graph: Graph
    energies: Tensor


class Staged:
    """Encoder first, energies second.

    Arguments:
        settings: The parameters.
        num_features: The number of feature columns d₀.
        num_classes: The number of classes C; 0 without labels.
    """

    def __init__(self, settings: DeGEM, num_features: int, num_classes: int) -> None:
        self.settings = settings
        self._fitted_on: Known | None = None
        with seeded(settings.seed):
            self.module = StagedModel(
                num_features=num_features,
                rank=settings.projection_dim,
                num_random=settings.random_dim,
                hops=used_hops(settings.num_hops),
                latent_dim=settings.latent_dim,
                num_classes=num_classes,
                density_rank=settings.density_dim,
                head_dim=settings.head_dim,
                dropout=settings.dropout,
                weights=settings.term_weights,
            ).to(settings.device)

    def fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        """Project and propagate, train the encoder, fit the energies, scale the terms."""
        settings, model, graph = self.settings, self.module, training.graph
        means = self._class_hop_means(training)
        model.hop_means.copy_(torch.from_numpy(means))
        rank, num_random = projection_size(graph.features.shape[1], settings.projection_dim, settings.random_dim)
        some = self._scaled(sample_rows(graph.features, settings.seed))
        wanted = class_directions(means[list(model.hops)])
        projection = fit_projection(some, rank, num_random, seed=settings.seed, wanted=wanted)
        model.projection.copy_(torch.from_numpy(projection))
        inputs = self._inputs(graph)
        pool = draw_pool(inputs, training.nodes, graph.labels, np.random.default_rng(settings.seed))
        model.eval()
        with torch.no_grad():
            model.length_mean.copy_(pool.batch.log_lengths.mean(dim=0))
            model.length_std.copy_(pool.batch.log_lengths.std(dim=0, correction=0) + 1e-3)
            model.homophily.fill_(self._homophily(graph, pool))
        history = self._train_encoder(inputs, pool, training.checkpoints, on_progress)
        history |= self._fit_energies(inputs, pool, training.checkpoints, on_progress)
        inputs.close()
        return history

    @torch.no_grad()
    def settle(self, training: TrainingSet, held_out: NDArray[np.int64]) -> None:
        """How strange a node without neighbours is: the energies of training nodes are too low to tell."""
        known, alone = self._fitted_on, self._alone(training.graph).cpu()
        share = alone[training.nodes].float().mean().item()
        if known is not None and share:
            with_neighbours = torch.from_numpy(held_out)[~alone[held_out]]
            self.module.set_alone(self._smoothed(known.energies, training.graph)[with_neighbours], share)

    @torch.no_grad()
    def scores(self, graph: Graph) -> NDArray[np.float32]:
        """Scores, smoothed as far as the training labels were homophilic."""
        known, self._fitted_on = self._fitted_on, None
        if known is not None and known.graph.features is graph.features and known.graph.adjacency is graph.adjacency:
            return self._combined(known.energies, graph)
        (energies,) = self._passed(self._inputs(graph), self.module.energies)
        return self._combined(energies, graph)

    @torch.no_grad()
    def score(self, graph: Graph) -> Scored:
        """Scores and class probabilities from one pass, both smoothed."""
        if self.module.classifier is None:
            return Scored(self.scores(graph))
        energies, classes = self._passed(self._inputs(graph), self.module.energies, self.module.probabilities)
        smooth = self._over_neighbours(classes, graph, *CLASS_SMOOTHING)
        return Scored(self._combined(energies, graph), smooth.cpu().numpy())

    @torch.no_grad()
    def embed(self, graph: Graph) -> NDArray[np.float32]:
        """Latents of every node."""
        self.module.eval()
        return torch.cat([self.module.encode(batch).latents.cpu() for batch in self._inputs(graph).blocks()]).numpy()

    @torch.no_grad()
    def embed_some(self, graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Latents of some nodes."""
        self.module.eval()
        return self.module.encode(self._inputs(graph).batch(nodes)).latents.cpu().numpy()

    def hop_rows(self, graph: Graph, nodes: NDArray[np.int64]) -> list[Tensor]:
        """Hop features 0 … L of some nodes, all of them: those the model does not use get no part in the score."""
        scaled = self._scaled(graph.features)
        rows = hop_rows(graph.adjacency, scaled, nodes, self.module.hops[-1], self.settings.self_weight)
        return [torch.from_numpy(hop).to(self.settings.device) for hop in rows]

    def score_from_hops(self, hops: list[Tensor]) -> Tensor:
        """Scores from hop features alone: at an average degree, and before smoothing."""
        self.module.eval()
        projected = torch.stack([hops[hop] @ self.module.projection for hop in self.module.hops])
        degree = torch.expm1(self.module.length_mean[0]).expand(len(hops[0]))
        seen = projected / degree.clamp_min(1).sqrt()[:, None]
        latent = self.module.encode(HopBatch.of(seen, hops[0].norm(dim=1), degree))
        return self.module.scores(self.module.energies(latent), torch.zeros_like(degree, dtype=torch.bool))

    def hop_reference(self) -> list[Tensor]:
        """Mean hop features of each class."""
        return list(self.module.hop_means)

    def _scaled(self, features: Features) -> Features:
        return row_normalize(features) if self.settings.normalize_features else features

    def _class_hop_means(self, training: TrainingSet) -> NDArray[np.float32]:
        graph, settings = training.graph, self.settings

        def some_rows(rows: slice) -> Features:
            release(graph.features)  # what was read before
            return self._scaled(graph.features[rows])

        budget_bytes = 2**20 * (settings.memory_budget or default_budget())
        num_hops = self.module.hops[-1]
        return class_hop_means(
            graph.adjacency, some_rows, graph.labels, training.nodes, num_hops, settings.self_weight, budget_bytes
        )

    def _homophily(self, graph: Graph, pool: Pool) -> float:
        """The homophily of training labels; where few labelled nodes touch, that of classes guessed from features."""
        if labelled_edges(graph.adjacency, graph.labels)[0] >= ENOUGH_EDGES:
            return excess_homophily(graph.adjacency, graph.labels)
        own = F.normalize(pool.batch.hops[0], dim=1, eps=1e-8).cpu().numpy()
        guess = guessed_homophily(graph.adjacency[pool.nodes][:, pool.nodes], own, pool.labels)
        for count, enough in (((pool.labels >= 0).sum(), ENOUGH_LABELS), (graph.num_edges, ENOUGH_GUESSES)):
            guess *= count / (count + enough)  # a guess from little counts little
        return excess_homophily(graph.adjacency, graph.labels, guess)

    def _train_encoder(
        self, inputs: HopInputs, pool: Pool, checkpoints: Checkpoints | None, on_progress: OnProgress
    ) -> History:
        chosen = {field.name: getattr(self.settings, field.name) for field in dataclasses.fields(EncoderSettings)}
        chosen["batch_size"] = min(self.settings.batch_size or inputs.num_nodes, inputs.num_nodes)
        with seeded(self.settings.seed + 1):
            trainer = EncoderTrainer(self.module, inputs, pool, EncoderSettings(**chosen), self.settings.seed)
            history = train(
                trainer.step,
                self.settings.num_epochs,
                on_progress=on_progress,
                phase="train encoder",
                rows_per_step=2 * trainer.settings.batch_size,
                checkpoints=checkpoints,
                parts={"model": self.module, "optimizer": trainer.optimizer},
            )
        self.module.eval()
        return history

    def _fit_energies(
        self, inputs: HopInputs, pool: Pool, checkpoints: Checkpoints | None, on_progress: OnProgress
    ) -> History:
        """The second stage: classifiers, densities, prototypes, head, and the scale of each term."""
        model, settings = self.module, self.settings
        labels = pool.labels[pool.train]
        with torch.no_grad():
            direction = torch.sigmoid(model.encode(pool.batch).latents.mean(dim=0))
            model.critic_direction.copy_(model.critic(direction))
            latent = model.encode(select(pool.batch, pool.train))
            fit_classifiers(model, latent, labels)
            left_out = fit_densities(model, latent, labels)
            if model.classifier is not None:
                centre = pool.batch.mean_directions().mean(dim=0)
                known = torch.from_numpy(labels).to(centre.device)
                left_out["prototypes"] = model.prototype_energy.fit(latent.mean_directions(), known, centre)
            points = model.points(latent)
        history: History = {}
        if settings.head_dim:
            generator = torch.Generator(settings.device).manual_seed(settings.seed)
            trainer = HeadTrainer(
                model.latent_energy, points, HeadSettings(settings.energy_penalty, settings.langevin), generator
            )
            with seeded(settings.seed), one_thread():  # a checkpoint puts PyTorch's generator back as it was
                history = train(
                    trainer.step,
                    settings.num_head_steps,
                    on_progress=on_progress,
                    phase="train head",
                    checkpoints=checkpoints,
                    parts=trainer.parts,
                )
            trainer.finish()
            with torch.no_grad():
                left_out["latent"] += model.latent_energy.residual(model.latent_energy.whiten(points))
        self._set_scale(inputs, pool, left_out)
        return {name: values for name, values in history.items() if name != "seconds"}

    @torch.no_grad()
    def _set_scale(self, inputs: HopInputs, pool: Pool, left_out: dict[str, Tensor]) -> None:
        """Where each term lies on training nodes, each left out of its densities, and how wide."""
        train = pool.nodes[pool.train]
        (energies,) = self._passed(inputs, self.module.energies)
        self._fitted_on = Known(inputs.graph, energies)  # calibration asks for the same right after
        energies = self._smoothed(replace_terms(energies, train, left_out), inputs.graph)[torch.from_numpy(train)]
        self.module.set_scale(energies)

    def _passed(self, inputs: HopInputs, *parts: Callable[[Latent], Tensor]) -> list[Tensor]:
        """What some parts of the model make of every node's latents, before smoothing."""
        self.module.eval()
        latents = (self.module.encode(batch) for batch in inputs.blocks())
        made = [[part(latent) for part in parts] for latent in latents]
        return [torch.cat(found) for found in zip(*made, strict=True)]

    def _combined(self, energies: Tensor, graph: Graph) -> NDArray[np.float32]:
        return self.module.scores(self._smoothed(energies, graph), self._alone(graph)).cpu().numpy()

    def _alone(self, graph: Graph) -> Tensor:
        return torch.from_numpy(graph.degrees == 0).to(self.settings.device)

    def _smoothed(self, energies: Tensor, graph: Graph) -> Tensor:
        smooth = energies.clone()
        smooth[:, SMOOTHED] = self._over_neighbours(energies[:, SMOOTHED], graph, *SCORE_SMOOTHING)
        return smooth

    def _over_neighbours(self, values: Tensor, graph: Graph, weight: float, num_steps: int) -> Tensor:
        weight *= self.module.homophily.item()
        mixed = smooth_over_neighbours(graph.adjacency, values.cpu().numpy(), weight=weight, num_steps=num_steps)
        return torch.from_numpy(mixed).to(values)

    def _inputs(self, graph: Graph) -> HopInputs:
        return HopInputs(
            graph,
            self.module.projection.cpu().numpy(),
            self.module.hops,
            self_weight=self.settings.self_weight,
            normalize=self.settings.normalize_features,
            device=self.settings.device,
            memory_budget=self.settings.memory_budget,
        )


def used_hops(num_hops: int) -> tuple[int, ...]:
    """The hops up to ``num_hops`` that are looked at: they lie further apart the farther away they are.

    Example:
        >>> used_hops(10), used_hops(4)
        ((0, 1, 2, 3, 5, 10), (0, 1, 2, 3, 4))
    """
    return (*(hop for hop in SPACING if hop < num_hops), num_hops)


def class_directions(means: NDArray[np.float32]) -> NDArray[np.float32]:
    """Where the mean of each class points from the middle of all, at each hop: directions that tell classes apart.

    Arguments:
        means: Mean features of each class at each hop, of shape (hops, C, d₀).

    Returns:
        Vectors of shape (hops · C, d₀), as long on average at one hop as at another.

    Example:
        >>> class_directions(np.array([[[3.0, 0.0], [1.0, 0.0]]], dtype=np.float32))
        array([[ 1.,  0.],
               [-1.,  0.]], dtype=float32)
    """
    apart = means - means.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(apart, axis=2, keepdims=True).mean(axis=1, keepdims=True)
    scaled: NDArray[np.float32] = apart / np.maximum(lengths, 1e-12)
    return scaled.reshape(-1, means.shape[2])
