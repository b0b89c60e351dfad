"""DeGEM as a detector: its parameters, how it is fitted, and how it scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional as F

from degem.calibration.known import KnownNodes
from degem.detectors.base import Detector, ScoreResult
from degem.detectors.cost import Cost
from degem.detectors.degem.combine import Combination
from degem.detectors.degem.cost import fit_cost
from degem.detectors.degem.encoder_training import EncoderSettings, EncoderTrainer, Pool, draw_pool
from degem.detectors.degem.energies import TrainingRows
from degem.detectors.degem.energies.latent import CHAINS_AT_TEMPERATURE_ONE, HeadSettings
from degem.detectors.degem.hold_out import hold_out
from degem.detectors.degem.hop_batch import HopBatch, Latent
from degem.detectors.degem.hop_inputs import HopInputs
from degem.detectors.degem.model import DeGEMModel
from degem.detectors.degem.row_scorer import RowScorer, ScoredRows, Smoothing, result_of
from degem.detectors.restoring import restored
from degem.detectors.split import TrainingSet
from degem.graph import Graph, as_graph
from degem.model_file import tensor_of
from degem.ops.estimates import fit_logistic, fit_projection, sample_rows
from degem.ops.features import is_bag_of_words
from degem.ops.homophily import excess_homophily, guessed_homophily, labelled_edges
from degem.ops.langevin import LangevinSettings
from degem.parameters import Count, Depth, Dropout, NonNegative, NonNegativeInt, Positive, Width
from degem.propagation.hop_features import class_hop_means
from degem.propagation.smoothing import smooth_over_neighbours
from degem.threads import one_thread
from degem.training import History, OnProgress, seeded, silent, train

SPACING = (0, 1, 2, 3, 5, 10, 20, 50)
ENOUGH_EDGES, ENOUGH_LABELS, ENOUGH_GUESSES = 100, 3, 2000
SCORE_SMOOTHING, CLASS_SMOOTHING = (0.7, 8), (0.35, 1)  # weight of the neighbours, steps
LENGTH_PRIOR = 0.03


@dataclasses.dataclass(kw_only=True, eq=False)
class DeGEM(Detector):
    r"""Decoupled graph energy model: energies in the latent space of a contrastive encoder. Higher = more OOD.

    A multi-hop encoder :math:`h = g(x, \mathcal{N}(x))` is trained by Deep Graph Infomax and cross-entropy, then the
    terms of the energy, of which one is the paper's: a head :math:`f(h)` by maximum likelihood with Langevin sampling
    in latent space. Others are about own features, the neighbourhood (whether it is real, the degrees in it), whether
    both belong together, and classes: the factors of :math:`-\log p(x, \mathcal{N}, y)`. Each becomes the logarithm of
    its tail probability over in-distribution nodes, and they are added: see ``docs/method.md``. No OOD node is needed.
    All but propagation is fitted on one thread: scores then agree to float noise whatever the number of threads.
    Chen et al., *Decoupled Graph Energy-based Model for Node Out-of-Distribution Detection on Heterophilic Graphs*,
    ICLR 2025; the paper's own training is :class:`~degem.detectors.degem_published.DeGEMPublished`.

    Arguments:
        num_hops: Hops :math:`L`; hops 0, 1, 2, 3, 5, 10, … of them are looked at.
        latent_dim: Size :math:`d` of the latent.
        projection_dim: Directions that wide features are projected to, singular and up to 32 of classes.
        features: What features are: a bag of words (``counts``) or columns of a ``table``; ``auto`` looks at them.
        classification_weight: Weight :math:`\xi` of the cross-entropy; 0 switches it off.
        energy_penalty: Weight :math:`c` of the squared energies.
        langevin: :math:`K`, :math:`\lambda`, :math:`\sigma`, :math:`M` of the sampler.
        num_epochs: Training steps :math:`E` of the encoder.
        batch_size: Nodes in a step.
        learning_rate: Adam's learning rate.
        dropout: Dropout of the encoder.
        memory_budget: MiB that hop features may take in memory; default: a quarter of what is free.

    Example:
        >>> from degem.data.demo import digits_graph
        >>> graph = digits_graph()
        >>> detector = DeGEM(num_epochs=5).fit(graph)
        >>> detector.decision_function(graph).shape
        (1797,)
    """

    name: ClassVar[str] = "degem"
    paper: ClassVar[str] = "Chen et al. 2025"
    needs_labels: ClassVar[bool] = False

    num_hops: Depth = 10
    latent_dim: Width = 64
    projection_dim: Width = 288
    features: Literal["auto", "counts", "table"] = "auto"
    classification_weight: NonNegative = 1.0
    energy_penalty: NonNegative = 0.1
    langevin: LangevinSettings = CHAINS_AT_TEMPERATURE_ONE
    num_epochs: NonNegativeInt = 150
    batch_size: Count = 256
    learning_rate: Positive = 5e-3
    dropout: Dropout = 0.3
    memory_budget: Positive | None = None

    @property
    def one_machine(self) -> None:
        """Nothing keeps it on one machine."""
        return None

    def estimate(self, graph: Any) -> Cost:
        """What :meth:`fit` on ``graph`` will take."""
        return fit_cost(self, as_graph(graph), used_hops(self.num_hops))

    # -- fitting -----------------------------------------------------------------------------------------------

    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        graph, held_out = training.graph, hold_out(training)
        with one_thread():
            history = self._learn(training.without(held_out), on_progress)
        isolated = graph.degrees == 0
        self.model_.isolated_share.fill_((isolated[training.nodes].sum() + 1) / (len(training.nodes) + 1))
        with torch.no_grad():  # the nodes held out arrive, as new ones will
            energies, _ = self._energies(graph, on_progress)
            scale = held_out if len(held_out) else training.nodes  # of a handful none is held out
            self.model_.keep(self.model_.combination_of(*self._of(scale, energies, isolated)))
        self.held_out_ = KnownNodes.of(graph, held_out)
        return history

    def _combination(self, graph: Graph, energies: Tensor) -> Combination:
        """How terms are combined: by how they are distributed over held-out nodes in this graph, if it holds them.

        Growth moves energies, so a scale that was taken before it is no longer one.
        """
        rows = self.held_out_.rows_in(graph)
        if rows is None:
            return self.model_.combination
        return self.model_.combination_of(*self._of(rows, energies, graph.degrees == 0))

    @staticmethod
    def _of(rows: NDArray[np.int64], energies: Tensor, isolated: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
        at = torch.from_numpy(rows).to(energies.device)
        return energies[at], torch.from_numpy(isolated[rows]).to(energies.device)

    def _learn(self, training: TrainingSet, on_progress: OnProgress) -> History:
        """Scale and project features, train the encoder, fit the terms."""
        graph = training.graph
        sample = sample_rows(graph.features, self.seed)
        self.is_table_ = not is_bag_of_words(sample) if self.features == "auto" else self.features == "table"
        self.model_ = model = self._new_model()
        model.rows.fit(sample, np.random.default_rng(self.seed))
        means = self._class_hop_means(training)
        wanted = class_directions(means[list(model.hops)])
        projection = fit_projection(
            model.rows.encode(sample), model.projection.shape[1], 0, seed=self.seed, wanted=wanted
        )
        model.projection.copy_(torch.from_numpy(projection))
        inputs = self._inputs(graph, on_progress)
        pool = draw_pool(inputs, training.nodes, graph.labels, np.random.default_rng(self.seed))
        model.eval()
        with torch.no_grad():
            model.length_mean.copy_(pool.batch.log_lengths.mean(dim=0))
            model.length_std.copy_(pool.batch.log_lengths.std(dim=0, correction=0) + 1e-3)
            model.homophily.fill_(self._homophily(graph, pool))
        history = self._train_encoder(inputs, pool, on_progress)
        self._fit_terms(pool)
        return history

    def _train_encoder(self, inputs: HopInputs, pool: Pool, on_progress: OnProgress) -> History:
        chosen = {field.name: getattr(self, field.name) for field in dataclasses.fields(EncoderSettings)}
        chosen["batch_size"] = min(self.batch_size, inputs.num_nodes)
        with seeded(self.seed + 1):
            trainer = EncoderTrainer(self.model_, inputs, pool, EncoderSettings(**chosen), self.seed)
            history = train(
                trainer.step,
                self.num_epochs,
                on_progress=on_progress,
                phase="train encoder",
                rows_per_step=2 * trainer.settings.batch_size,
            )
        self.model_.eval()
        return history

    def _fit_terms(self, pool: Pool) -> None:
        model, labels = self.model_, pool.labels[pool.train]
        generator = torch.Generator(self.device).manual_seed(self.seed)
        with torch.no_grad():
            latent = model.encode(pool.batch)
            self._fit_length_classifier(latent.select(pool.train), labels)
        dimension = model.rows.dimension.item()
        rows = TrainingRows(latent, pool.train, labels, model.homophily.item(), dimension, generator)
        for term in model.energy_terms:
            term.fit(rows)

    def _fit_length_classifier(self, latent: Latent, labels: NDArray[np.int64]) -> None:
        """A logistic regression of the classes on lengths and degree, beside the classes' shares."""
        labelled, classifier = labels >= 0, self.model_.length_classifier
        if classifier is None or len(np.unique(labels[labelled])) < 2:
            return
        waves, labels = classifier.waves(latent.standard).cpu().numpy()[labelled], labels[labelled]
        weight, bias = fit_logistic(waves, labels, LENGTH_PRIOR / len(labels))
        classifier.linear.weight.copy_(torch.from_numpy(weight))
        classifier.linear.bias.copy_(torch.from_numpy(bias - np.log(np.bincount(labels) / len(labels))))

    def _class_hop_means(self, training: TrainingSet) -> NDArray[np.float32]:
        graph, hops = training.graph, self.model_.hops[-1]
        return class_hop_means(
            graph.adjacency,
            graph.features,
            graph.labels,
            training.nodes,
            hops,
            0.0,
            encode=self.model_.rows.encode,
            memory_budget=self.memory_budget,
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

    # -- scoring -----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _score(self, graph: Graph) -> ScoreResult:
        energies, classes = self._energies(graph)
        chances = None if classes is None else self._over_neighbours(classes, graph, *CLASS_SMOOTHING).cpu().numpy()
        return result_of(self.model_, energies, graph.degrees == 0, chances, self._combination(graph, energies))

    def row_scorer(self) -> RowScorer:
        """What scores nodes from rows that the caller keeps up to date, as of a graph that changes."""
        weight, num_steps = SCORE_SMOOTHING
        class_weight, num_class_steps = CLASS_SMOOTHING
        homophily = self.model_.homophily.item()
        self.model_.eval()
        return RowScorer(
            self.model_,
            Smoothing(weight * homophily, num_steps),
            Smoothing(class_weight * homophily, num_class_steps),
            self.held_out_,
        )

    def _energies(self, graph: Graph, on_progress: OnProgress = silent) -> tuple[Tensor, Tensor | None]:
        """The energies of every term, smoothed where a term is, and class probabilities if there are classes."""
        model = self.model_
        parts = [model.energies] if model.classifier is None else [model.energies, model.probabilities]
        model.eval()
        made = self._inputs(graph, on_progress).map(partial(_passed, model, parts))
        energies, *classes = (torch.from_numpy(part).to(self.device) for part in made)
        smoothed = torch.tensor(model.smoothed)
        if smoothed.any():
            energies[:, smoothed] = self._over_neighbours(energies[:, smoothed], graph, *SCORE_SMOOTHING)
        return energies, classes[0] if classes else None

    @torch.no_grad()
    def embed(self, graph: Any, *, nodes: ArrayLike | None = None) -> NDArray[np.float32]:
        """The latent of each node; with ``nodes``, indices, of these only."""
        self.model_.eval()
        inputs = self._inputs(self._checked(graph))
        if nodes is not None:
            return self.model_.encode(inputs.batch(np.asarray(nodes))).latents.cpu().numpy()
        return inputs.map(partial(_passed, self.model_, (_latents,)))[0]

    def _over_neighbours(self, values: Tensor, graph: Graph, weight: float, num_steps: int) -> Tensor:
        weight *= self.model_.homophily.item()
        mixed = smooth_over_neighbours(graph.adjacency, values.cpu().numpy(), weight=weight, num_steps=num_steps)
        return torch.from_numpy(mixed).to(values)

    def _inputs(self, graph: Graph, on_progress: OnProgress = silent) -> HopInputs:
        return HopInputs(
            graph,
            self.model_.rows,
            self.model_.projection.cpu().numpy(),
            self.model_.hops,
            device=self.device,
            memory_budget=self.memory_budget,
            on_progress=on_progress,
        )

    @torch.no_grad()
    def scored_rows(self, graph: Graph, nodes: NDArray[np.int64]) -> ScoredRows:
        """The rows of some nodes, as they are scored in the graph: what explanations mix."""
        energies, _ = self._energies(graph)
        inputs = self._inputs(graph)
        batch = inputs.batch(nodes)
        smoothing = energies[torch.from_numpy(nodes)] - self.model_.energies(self.model_.encode(batch))
        return ScoredRows(
            hops=batch.hops.cpu().numpy(),
            degrees=inputs.per_node[1][nodes],
            returning=batch.returning.cpu().numpy(),
            smoothing=smoothing.cpu().numpy(),
            combination=self._combination(graph, energies),
        )

    # -- saving ------------------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Tensor]:
        held_out = {f"held_out.{name}": tensor for name, tensor in self.held_out_.state().items()}
        return {**self.model_.state_dict(), **held_out, "is_table": torch.tensor(self.is_table_)}

    def _restore(self, state: dict[str, Tensor]) -> None:
        self.is_table_ = bool(tensor_of(state, "is_table", torch.bool))
        self.held_out_ = KnownNodes.restored(state, "held_out.")
        self.model_ = restored(self, self._new_model, state)

    def _new_model(self) -> DeGEMModel:
        with seeded(self.seed):
            return DeGEMModel(
                num_features=self.num_features_,
                width=min(self.num_features_, self.projection_dim),
                hops=used_hops(self.num_hops),
                latent_dim=self.latent_dim,
                num_classes=len(self.classes_),
                is_table=self.is_table_,
                dropout=self.dropout,
                head=HeadSettings(self.energy_penalty, self.langevin),
            ).to(self.device)


@torch.no_grad()
def _passed(
    model: DeGEMModel, parts: Sequence[Callable[[Latent], Tensor]], batch: HopBatch
) -> tuple[NDArray[np.float32], ...]:
    """What some parts of the model make of nodes, before smoothing."""
    latent = model.encode(batch)
    return tuple(part(latent).cpu().numpy() for part in parts)


def _latents(latent: Latent) -> Tensor:
    return latent.latents


def used_hops(num_hops: int) -> tuple[int, ...]:
    """The hops up to ``num_hops`` that are looked at: they lie further apart the farther away they are.

    Example:
        >>> used_hops(10), used_hops(4)
        ((0, 1, 2, 3, 5, 10), (0, 1, 2, 3, 4))
    """
    return (*(hop for hop in SPACING if hop < num_hops), num_hops)


def class_directions(means: NDArray[np.float32]) -> NDArray[np.float32]:
    """Where the mean of each class points from the mean of all, at each hop: directions that tell classes apart.

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
