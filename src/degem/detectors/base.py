"""What every detector has: fitting, scoring, calibrated decisions, saving and loading."""

from __future__ import annotations

import dataclasses
import warnings
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from degem import calibration, model_file, parameters
from degem.detectors import explanation, notebook
from degem.detectors.cost import Cost
from degem.detectors.explanation import Explanation
from degem.detectors.registry import METHODS, Registry
from degem.detectors.restoring import Stored, tensor_of
from degem.detectors.split import TrainingSet, resolve_training_set
from degem.errors import (
    CalibrationWarning,
    DegemError,
    GraphError,
    ModelFileError,
    NotFittedError,
    ScoreWarning,
    quoted,
)
from degem.graph import Graph, NodeSet, as_graph
from degem.parameters import NonNegativeInt
from degem.training import History, OnProgress, Progress, silent

if TYPE_CHECKING:
    import pandas as pd

CALIBRATION = {"calibration.scores", "calibration.degrees"}


@dataclasses.dataclass(frozen=True)
class Scored:
    """What one pass over a graph gives.

    Arguments:
        scores: One number a node, higher = more out-of-distribution.
        probabilities: Class probabilities of shape (n, C), or None for a detector fitted without labels.
    """

    scores: NDArray[np.floating[Any]]
    probabilities: NDArray[np.floating[Any]] | None = None


@dataclasses.dataclass(kw_only=True, eq=False)
class Detector(ABC):
    """The base of every detector. **A higher score is more out-of-distribution.**

    A method is a dataclass with this base: its fields are its parameters (stored untouched, checked in ``fit``), and it
    implements ``_fit``, ``_score``, ``_state`` and ``_restore``. What is learnt ends in an underscore.

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
    inductive: ClassVar[bool] = True
    registry: ClassVar[Registry] = Registry(METHODS)

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Register a class that gives itself a name."""
        super().__init_subclass__(**keywords)
        if "name" in cls.__dict__:
            Detector.registry[cls.name] = cls

    # -- what a method implements ------------------------------------------------------------------------------

    @abstractmethod
    def _fit(self, training: TrainingSet, on_progress: OnProgress) -> History:
        """Learn from ``training``; keep what is learnt in attributes ending in ``_``; return the training curves."""

    def _settle(self, training: TrainingSet, held_out: NDArray[np.int64]) -> None:
        """Set what training nodes cannot tell, from held-out in-distribution nodes; most methods set nothing."""
        return

    @abstractmethod
    def _score(self, graph: Graph) -> Scored:
        """Scores (higher = more OOD) and class probabilities of every node."""

    def _scores(self, graph: Graph) -> NDArray[np.floating[Any]]:
        """Scores alone, for methods that have less to do where nobody asks for classes."""
        return self._score(graph).scores

    @abstractmethod
    def _state(self) -> dict[str, torch.Tensor]:
        """Everything learnt, as named tensors."""

    @abstractmethod
    def _restore(self, state: dict[str, torch.Tensor]) -> None:
        """The inverse of :meth:`_state`; ``num_features_`` and ``classes_`` are set already."""

    def _embed(self, graph: Graph) -> NDArray[np.float32]:
        """Latents of every node, for methods that have some."""
        raise DegemError(f"{type(self).__name__} has no latents to embed")

    def _embed_some(self, graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Latents of some nodes, for methods that can do with less than all of them."""
        return self._embed(graph)[nodes]

    def estimate(self, graph: Any) -> Cost | None:
        """What :meth:`fit` on ``graph`` will take, of methods that can tell."""
        return None

    # -- fitting -----------------------------------------------------------------------------------------------

    def fit(
        self,
        graph: Any,
        *,
        train_mask: ArrayLike | None = None,
        calibration_mask: ArrayLike | None = None,
        exposure: NodeSet | None = None,
        on_progress: OnProgress = silent,
    ) -> Self:
        """Learn what in-distribution nodes of ``graph`` look like, and calibrate on held-out ones.

        The in-distribution nodes are the labelled ones, or all nodes where the graph has no labels at all.

        Arguments:
            graph: A :class:`~degem.Graph` or a ``torch_geometric.data.Data``; it is not changed.
            train_mask: Nodes to learn from. Default: the graph's ``train`` mask, else every ID node not held out.
            calibration_mask: ID nodes held out for p-values. Default: the graph's ``val`` mask, else a seeded 10 %.
            exposure: Nodes known to be OOD, for the methods that need such.
            on_progress: Told where the work stands.
        """
        parameters.check(self)
        parameters.present_device(self.device)
        graph = as_graph(graph)
        training, held_out, classes = resolve_training_set(
            graph, train_mask, calibration_mask, exposure if self.needs_exposure else None, self.seed
        )
        if self.needs_labels and len(classes) == 0:
            raise GraphError(f"{type(self).__name__} needs labelled nodes to train on, and the graph has none there")
        if self.needs_exposure and exposure is None:
            raise DegemError(f"{type(self).__name__} needs nodes known to be OOD: pass exposure=NodeSet(graph, nodes)")
        self._forget()
        self.num_features_ = graph.num_features
        self.feature_names_ = graph.feature_names
        self.classes_ = classes
        self.class_names_ = graph.class_names
        self.num_training_nodes_ = len(training.nodes)
        self.history_: History = self._fit(training, on_progress)
        self._settle(training, held_out)
        on_progress(Progress("calibrate", 0, 1))
        self.calibration_scores_ = self.decision_function(graph)[held_out]
        self.calibration_degrees_ = graph.degrees[held_out]
        on_progress(Progress("calibrate", 1, 1))
        return self

    # -- scoring -----------------------------------------------------------------------------------------------

    def decision_function(self, graph: Any) -> NDArray[np.float64]:
        """One score a node, of shape (n,): higher = more out-of-distribution."""
        graph = self._checked(graph)
        return self._sound(self._scores(graph), graph)

    def predict_proba(self, graph: Any) -> NDArray[np.float64]:
        """Class probabilities of shape (n, C), columns in the order of ``classes_``."""
        probabilities = self._scored(graph).probabilities
        if probabilities is None:
            raise DegemError(f"this {type(self).__name__} was fitted without labels: it predicts no classes")
        return np.asarray(probabilities, dtype=np.float64)

    def predict_class(self, graph: Any) -> NDArray[np.int64]:
        """The predicted class of each node, numbered as in the graph the detector was fitted on."""
        best = np.asarray(self.classes_)[self.predict_proba(graph).argmax(axis=1)]
        return np.asarray(best, dtype=np.int64)

    def embed(self, graph: Any, *, nodes: ArrayLike | None = None) -> NDArray[np.float32]:
        """The latent of each node, of shape (n, d); with ``nodes`` of these only."""
        graph = self._checked(graph)
        latents = self._embed(graph) if nodes is None else self._embed_some(graph, np.asarray(nodes, dtype=np.int64))
        return np.asarray(latents, dtype=np.float32)

    def p_values(self, graph: Any, *, by_degree: bool = False) -> NDArray[np.float64]:
        """Conformal p-values: how often a held-out ID node scores at least as high.

        Arguments:
            graph: The graph to score.
            by_degree: Compare each node with held-out nodes of similar degree only.
        """
        graph = self._checked(graph)
        return self.p_values_of(self.decision_function(graph), graph.degrees if by_degree else None)

    def p_values_of(self, scores: ArrayLike, degrees: ArrayLike | None = None) -> NDArray[np.float64]:
        """The p-values of scores that are already there; with ``degrees`` stratified by degree."""
        self._require_fitted()
        if degrees is None:
            return calibration.conformal_p_values(self.calibration_scores_, scores)
        return calibration.stratified_p_values(self.calibration_scores_, self.calibration_degrees_, scores, degrees)

    def predict(
        self, graph: Any, *, alpha: float = 0.05, fdr: float | None = None, by_degree: bool = False
    ) -> NDArray[np.int64]:
        """1 for nodes flagged as OOD, else 0.

        Arguments:
            graph: The graph to score.
            alpha: The false-alarm rate: the share of ID nodes that may be flagged.
            fdr: Instead of ``alpha``, the share of flagged nodes that may be false alarms (Benjamini–Hochberg).
            by_degree: See :meth:`p_values`.
        """
        p = self.p_values(graph, by_degree=by_degree)
        return self.flags_of(p, alpha=alpha, fdr=fdr, by_degree=by_degree)

    def flags_of(
        self, p_values: ArrayLike, *, alpha: float = 0.05, fdr: float | None = None, by_degree: bool = False
    ) -> NDArray[np.int64]:
        """The decisions that p-values give: see :meth:`predict`."""
        self._require_fitted()
        p = np.asarray(p_values, dtype=np.float64)
        level = alpha if fdr is None else fdr
        needed = calibration.nodes_needed(level)
        count = len(self.calibration_scores_)
        if by_degree:
            count = calibration.smallest_stratum(self.calibration_degrees_)
        if count < needed:
            warnings.warn(
                CalibrationWarning(
                    f"{count} calibration nodes{' of similar degree' if by_degree else ''} cannot support a level "
                    f"of {level:g}: no node can be flagged {'there' if by_degree else 'at all'}; "
                    f"hold out at least {needed}"
                ),
                stacklevel=2,
            )
        flags = p <= alpha if fdr is None else calibration.benjamini_hochberg(p, fdr)
        return np.asarray(flags, dtype=np.int64)

    def score_table(
        self, graph: Any, *, alpha: float = 0.05, fdr: float | None = None, by_degree: bool = False
    ) -> pd.DataFrame:
        """Everything a score file holds, one row a node, from one pass over the graph.

        The columns are ``node_id``, ``score`` (higher = more OOD), ``p_value``, ``is_ood``, ``predicted_class`` (its
        name where it has one) and ``class_probability``; the last two are missing values for a detector fitted
        without labels. Arguments as in :meth:`predict`.
        """
        import pandas as pd  # slow to load, and most of what detectors do needs no table

        graph = self._checked(graph)
        scored = self._scored(graph)
        p = self.p_values_of(scored.scores, graph.degrees if by_degree else None)
        table = pd.DataFrame({"node_id": graph.node_ids, "score": scored.scores, "p_value": p})
        table["is_ood"] = self.flags_of(p, alpha=alpha, fdr=fdr, by_degree=by_degree).astype(np.bool_)
        if scored.probabilities is None:
            return table.assign(predicted_class=None, class_probability=np.nan)
        names = self.classes_ if self.class_names_ is None else [self.class_names_[index] for index in self.classes_]
        table["predicted_class"] = np.asarray(names)[scored.probabilities.argmax(axis=1)]
        table["class_probability"] = scored.probabilities.max(axis=1).astype(np.float64)
        return table

    # -- explaining --------------------------------------------------------------------------------------------

    @property
    def has_latents(self) -> bool:
        """Whether :meth:`embed` gives something."""
        return type(self)._embed is not Detector._embed

    def explain(self, graph: Any, nodes: ArrayLike, *, reference: Any | None = None) -> list[Explanation]:
        """Why ``nodes`` got their scores, one :class:`~degem.detectors.explanation.Explanation` a node.

        Arguments:
            graph: The graph that holds the nodes.
            nodes: Their indices, or a mask.
            reference: The training graph; with it the nearest training nodes in latent space are named.
        """
        return explanation.explain(self, self._checked(graph), nodes, reference=reference)

    def _repr_html_(self) -> str:
        return notebook.detector_html(self)

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
        self._require_fitted()
        state = {f"model.{name}": tensor for name, tensor in self._state().items()}
        state["calibration.scores"] = torch.from_numpy(np.array(self.calibration_scores_))
        state["calibration.degrees"] = torch.from_numpy(np.array(self.calibration_degrees_))
        model_file.write(
            Path(path),
            state,
            {
                "method": self.name,
                "parameters": parameters.values(self, deep=False),
                "num_features": self.num_features_,
                "feature_names": self.feature_names_,
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
        state, about = model_file.read(Path(path))
        stored = model_file.checked(path, Stored, about)
        kind = Detector.registry.get(stored.method)
        if kind is None or not issubclass(kind, cls):
            raise model_file.foreign(path, stored.method, cls.__name__)
        detector = kind(**parameters.from_json(kind, stored.parameters, whole=True))
        detector.device = parameters.present_device(device or detector.device)
        detector.num_features_ = stored.num_features
        detector.feature_names_ = None if stored.feature_names is None else tuple(stored.feature_names)
        detector.classes_ = tuple(stored.classes)
        detector.class_names_ = None if stored.class_names is None else tuple(stored.class_names)
        detector.num_training_nodes_ = stored.num_training_nodes
        detector.history_ = stored.history
        detector.calibration_scores_ = tensor_of(state, "calibration.scores", torch.float64, None).numpy()
        num_held_out = len(detector.calibration_scores_)
        detector.calibration_degrees_ = tensor_of(state, "calibration.degrees", torch.int64, num_held_out).numpy()
        learnt = {name.removeprefix("model."): value for name, value in state.items() if name.startswith("model.")}
        detector._restore(learnt)
        if extra := state.keys() - CALIBRATION - {f"model.{name}" for name in detector._state()}:
            raise ModelFileError(f"{path} holds a tensor {quoted(min(extra))} that {stored.method} does not have")
        return detector

    # -- checks ------------------------------------------------------------------------------------------------

    def _scored(self, graph: Any) -> Scored:
        graph = self._checked(graph)
        scored = self._score(graph)
        return Scored(self._sound(scored.scores, graph), scored.probabilities)

    def _sound(self, scores: NDArray[np.floating[Any]], graph: Graph) -> NDArray[np.float64]:
        """The scores, if they are what they should be."""
        sound = np.asarray(scores, dtype=np.float64)
        if sound.shape != (graph.num_nodes,) or not np.isfinite(sound).all():
            raise DegemError(
                f"{type(self).__name__} gave scores that are not one finite number a node: "
                "scale the features down, or change its parameters"
            )
        if len(sound) > 1 and (sound == sound[0]).all():
            warnings.warn(
                ScoreWarning(f"{type(self).__name__} gave all nodes the same score: it cannot tell these apart"),
                stacklevel=4,
            )
        return sound

    def _checked(self, graph: Any) -> Graph:
        """The graph, if this detector can score it."""
        if not hasattr(self, "num_features_"):
            self._require_fitted()
        checked = as_graph(graph)
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

    def _forget(self) -> None:
        """Drop what an earlier fit learnt, so that one that is interrupted leaves no mixture of two."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _require_fitted(self) -> None:
        if not hasattr(self, "calibration_scores_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(graph) or load(path) first")
