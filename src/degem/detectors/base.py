"""What every detector has: fitting, scoring, parameters, saving and loading."""

from __future__ import annotations

import dataclasses
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from degem import model_file, parameters
from degem.calibration.decisions import Decisions
from degem.calibration.judged import ScoreResult as ScoreResult
from degem.calibration.known import FitNodes
from degem.calibration.nodes import Calibration
from degem.detectors.registry import METHODS, Registry
from degem.detectors.restoring import Stored
from degem.detectors.split import TrainingSet, resolve_training_set
from degem.errors import DegemError, GraphError, ModelFileError, NotFittedError, ScoreWarning, quoted
from degem.graph import Graph, NodeSet, as_graph
from degem.parameters import NonNegativeInt
from degem.propagation import choose_propagator
from degem.training import History, OnProgress, Progress, silent


@dataclasses.dataclass(frozen=True)
class Epoch:
    """What a callback is told after each epoch.

    Arguments:
        done: Epochs finished.
        total: Epochs in all.
        score: Scores a graph by the detector as it is now; a NotFittedError where its score needs what is learnt later.
    """

    done: int
    total: int
    score: Callable[[Graph], ScoreResult]


OnEpoch = Callable[[Epoch], None]


@runtime_checkable
class HasLatents(Protocol):
    """A detector that scores latents."""

    def embed(self, graph: Any, *, nodes: ArrayLike | None = None) -> NDArray[np.float32]:
        """The latent of each node, of shape (n, d); with ``nodes``, indices, of these only."""


@dataclasses.dataclass(kw_only=True, eq=False)
class Detector(Decisions, ABC):
    """The base of every detector. **A higher score is more out-of-distribution.**

    A method is a dataclass with this base: its fields are its parameters (stored untouched, checked in ``fit``), and it
    implements ``_fit``, ``_score``, ``_state`` and ``_restore``. What is learnt ends in an underscore. Decisions come
    from :class:`~degem.calibration.Decisions`.

    Arguments:
        seed: Seed of everything random in ``fit``. The same seed gives the same scores on the same machine.
        device: Where tensors live: ``cpu`` or ``cuda``.
    """

    seed: NonNegativeInt = 0
    device: str = "cpu"

    name: ClassVar[str]
    paper: ClassVar[str]
    needs_labels: ClassVar[bool] = True
    needs_exposure: ClassVar[bool] = False
    registry: ClassVar[Registry] = Registry(METHODS)

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Register a class that gives itself a name, and take over what the registry says of it."""
        super().__init_subclass__(**keywords)
        if "name" in cls.__dict__:
            if cls.name in METHODS:
                _, cls.paper, cls.needs_labels, cls.needs_exposure = METHODS[cls.name]
            Detector.registry[cls.name] = cls

    @property
    def one_machine(self) -> str | None:
        """Why the method cannot use a cluster; None where scoring is a map over rows, and hops of columns."""
        return "its training and its scores read the whole graph at once"

    # -- what a method implements ------------------------------------------------------------------------------

    @abstractmethod
    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        """Learn from ``training``; keep what is learnt in attributes ending in ``_``; return the training curves."""

    @abstractmethod
    def _score(self, graph: Graph) -> ScoreResult:
        """Scores (higher = more OOD) and class probabilities of every node."""

    @abstractmethod
    def _state(self) -> dict[str, torch.Tensor]:
        """Everything learnt, as named tensors."""

    @abstractmethod
    def _restore(self, state: dict[str, torch.Tensor]) -> None:
        """The inverse of :meth:`_state`; ``num_features_`` and ``classes_`` are set already."""

    def _score_in_training(self, training: TrainingSet, graph: Graph) -> ScoreResult:
        """The score by the detector as it is while it trains, of methods that have one then."""
        raise NotFittedError(f"a {type(self).__name__} has no score until it is trained")

    # -- fitting and scoring -----------------------------------------------------------------------------------

    def fit(
        self,
        graph: Any,
        *,
        train_mask: ArrayLike | None = None,
        calibration_mask: ArrayLike | None = None,
        calibrate: bool = True,
        keep_calibration_nodes: bool = False,
        exposure: NodeSet | None = None,
        on_progress: OnProgress = silent,
        on_epoch: OnEpoch | None = None,
    ) -> Self:
        """Learn what in-distribution nodes of ``graph`` look like, and calibrate on held-out ones.

        The in-distribution nodes are the labelled ones, or all nodes where the graph has no labels at all. Calibration
        nodes are left out of the training graph with their edges, as new nodes were.

        Arguments:
            graph: A :class:`~degem.Graph` or a ``torch_geometric.data.Data``; it is not changed.
            train_mask: Nodes to learn from. Default: the graph's ``train`` mask, else every ID node not held out.
            calibration_mask: ID nodes held out for p-values. Default: the graph's ``val`` mask, else a seeded 10 %.
            calibrate: Without it no node is left out, and there are scores but no p-values.
            keep_calibration_nodes: Keep their features and edges in the model, so that p-values hold on graphs that
                have grown from the training nodes alone, too.
            exposure: Nodes known to be OOD, for the methods that need such.
            on_progress: Told where the work stands.
            on_epoch: Told after each epoch, with a function that scores by the detector as it is.
        """
        self._check_place()
        parameters.check(self)
        parameters.present_device(self.device)
        graph = as_graph(graph)
        training, held_out, classes = resolve_training_set(
            graph,
            train_mask,
            calibration_mask,
            exposure if self.needs_exposure else None,
            self.seed,
            calibrate=calibrate,
        )
        if self.needs_labels and len(classes) == 0:
            raise GraphError(f"{type(self).__name__} needs labelled nodes to train on, and the graph has none there")
        if self.needs_exposure and exposure is None:
            raise DegemError(f"{type(self).__name__} needs nodes known to be OOD: pass exposure=NodeSet(graph, nodes)")
        if keep_calibration_nodes and graph.is_weighted:
            raise DegemError(
                "keep_calibration_nodes keeps no weights of edges: leave it out, or fit graph.unweighted()"
            )
        self._reset()
        self.num_features_ = graph.num_features
        self.feature_names_ = graph.feature_names
        self.schema_, self.weighted_ = graph.schema, graph.is_weighted
        self.classes_ = classes
        self.class_names_ = graph.class_names
        self.num_training_nodes_ = len(training.nodes)
        self.fit_nodes_ = FitNodes.of(graph, training.graph)
        told = on_progress if on_epoch is None else _telling(on_progress, on_epoch, self, training)
        self.history_: History = self._fit(training, told)
        if calibrate:
            on_progress(Progress("calibrate", 0, 1))
            self._calibrate(graph, held_out, keep_calibration_nodes)
            on_progress(Progress("calibrate", 1, 1))
        return self

    def score(self, graph: Any) -> ScoreResult:
        """Scores, class probabilities and terms of every node, from one pass over the graph."""
        self._check_place()
        graph = self._checked(graph)
        result = self._score(graph)
        scores = np.asarray(result.scores, dtype=np.float64)
        if scores.shape != (graph.num_nodes,) or not np.isfinite(scores).all():
            raise DegemError(
                f"{type(self).__name__} gave scores that are not one finite number a node: "
                "scale the features down, or change its parameters"
            )
        if len(scores) > 1 and (scores == scores[0]).all():
            warnings.warn(
                ScoreWarning(f"{type(self).__name__} gave all nodes the same score: it cannot tell these apart"),
                stacklevel=3,
            )
        return dataclasses.replace(result, scores=scores)

    # -- parameters --------------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter and its value; nested ones as ``outer__inner`` (scikit-learn's convention)."""
        return parameters.values(self, deep=deep)

    def set_params(self, **changes: Any) -> Self:
        """Change parameters by name; nested ones as ``outer__inner``."""
        for name, value in changes.items():
            parameters.require_known(type(self), name)
            outer, _, inner = name.partition("__")
            if inner:
                value = dataclasses.replace(getattr(self, outer), **{inner: value})
            setattr(self, outer, value)
        return self

    # -- saving ------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the fitted detector into a folder (safetensors and JSON), atomically."""
        if not hasattr(self, "history_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(graph) or load(path) first")
        calibration: Calibration | None = getattr(self, "calibration_", None)
        state = {f"model.{name}": tensor for name, tensor in self._state().items()}
        state |= {f"fit_nodes.{name}": tensor for name, tensor in self.fit_nodes_.state().items()}
        if calibration is not None:
            state |= {f"calibration.{name}": tensor for name, tensor in calibration.state().items()}
        model_file.write(
            Path(path),
            state,
            {
                "method": self.name,
                "parameters": parameters.values(self, deep=False),
                "num_features": self.num_features_,
                "feature_names": self.feature_names_,
                "weighted": self.weighted_,
                "schema": None if self.schema_ is None else self.schema_.model_dump(),
                "classes": list(self.classes_),
                "class_names": self.class_names_,
                "num_training_nodes": self.num_training_nodes_,
                "history": self.history_,
            },
        )

    @classmethod
    def load(cls, path: str | Path, *, device: str | None = None) -> Self:
        """Read a detector that :meth:`save` wrote; ``Detector.load`` reads any method's.

        Arguments:
            path: The model folder.
            device: Where it shall live; default: where it was fitted.
        """
        state, metadata = model_file.read(Path(path))
        stored = model_file.checked(path, Stored, metadata)
        kind = Detector.registry.get(stored.method)
        if kind is None or not issubclass(kind, cls):
            raise model_file.foreign(path, stored.method, cls.__name__)
        detector = kind(**parameters.from_json(kind, stored.parameters, whole=True))
        detector.device = parameters.present_device(device or detector.device)
        detector.num_features_ = stored.num_features
        detector.feature_names_ = None if stored.feature_names is None else tuple(stored.feature_names)
        detector.schema_, detector.weighted_ = stored.table_schema, stored.weighted
        detector.classes_ = tuple(stored.classes)
        detector.class_names_ = None if stored.class_names is None else tuple(stored.class_names)
        detector.num_training_nodes_ = stored.num_training_nodes
        detector.history_ = stored.history
        detector.fit_nodes_ = FitNodes.restored(state, "fit_nodes.")
        expected = {f"fit_nodes.{name}" for name in detector.fit_nodes_.state()}
        if any(name.startswith("calibration.") for name in state):
            detector.calibration_ = Calibration.restored(state, "calibration.", stored.num_features)
            expected |= {f"calibration.{name}" for name in detector.calibration_.state()}
        detector._restore(_part(state, "model."))
        if extra := state.keys() - expected - {f"model.{name}" for name in detector._state()}:
            raise ModelFileError(f"{path} holds a tensor {quoted(min(extra))} that {stored.method} does not have")
        return detector

    # -- checks ------------------------------------------------------------------------------------------------

    def _checked(self, graph: Any) -> Graph:
        """The graph, if this detector can score it."""
        if not hasattr(self, "num_features_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(graph) or load(path) first")
        checked = as_graph(graph)
        if not self.weighted_:
            checked = checked.unweighted()
        if checked.schema and self.schema_ and checked.schema.columns != self.schema_.columns:
            raise GraphError(
                "the graph's columns are encoded by a schema of their own, not by that of the fit: "
                "read it with read_graph(…, schema=detector.schema_)"
            )
        if checked.num_features != self.num_features_:
            raise GraphError(
                f"the graph has {checked.num_features} feature columns, "
                f"but the detector was fitted on {self.num_features_}"
            )
        if None not in (checked.feature_names, self.feature_names_) and checked.feature_names != self.feature_names_:
            pairs = zip(self.feature_names_ or (), checked.feature_names or (), strict=True)
            column, (expected, got) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
            raise GraphError(f"feature column {column} is {got!r}, but the detector was fitted with {expected!r} there")
        return checked

    def _check_place(self) -> None:
        """Refuse a cluster where the method needs one machine."""
        if self.one_machine is not None and choose_propagator(0).remote:
            raise DegemError(f"{self.name} runs on one machine, without an engine: {self.one_machine}")

    def _reset(self) -> None:
        """Drop what an earlier fit learnt, so that one that is interrupted leaves no mixture of two."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)


def _telling(on_progress: OnProgress, on_epoch: OnEpoch, detector: Detector, training: TrainingSet) -> OnProgress:
    """A listener to progress that calls back after each epoch of training."""

    def told(progress: Progress) -> None:
        on_progress(progress)
        if progress.phase == "train":
            on_epoch(Epoch(progress.done, progress.total, lambda graph: detector._score_in_training(training, graph)))

    return told


def _part(state: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}
