"""Why a node was flagged: its score taken apart by hop and by feature, and the company it keeps."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from degem.detectors.notebook import explanation_html
from degem.errors import GraphError
from degem.graph import Graph, as_graph

if TYPE_CHECKING:
    from degem.detectors.base import Detector, Scored

Array = NDArray[np.floating[Any]]

NUM_PATH_STEPS = 16
NUM_FEATURES = 8
NUM_NEAREST = 3
MAX_REFERENCE_NODES = 2_000


@runtime_checkable
class HopScored(Protocol):
    """A detector whose score is a differentiable function of a node's own hop features.

    A method that implements these three has its scores explained by hop and by feature; one that does not gets the
    context only.
    """

    def _hop_rows(self, graph: Graph, nodes: NDArray[np.int64]) -> list[torch.Tensor]:
        """Hop features 0 … L of ``nodes``, each of shape (k, d₀), as the network sees them."""

    def _score_from_hops(self, hops: list[torch.Tensor]) -> torch.Tensor:
        """Scores of shape (k,), differentiable, each from its own row of ``hops`` only."""

    def _hop_reference(self) -> list[torch.Tensor]:
        """The mean hop features of the training nodes of each class, (C, d₀) a hop; one row without labels."""


@dataclasses.dataclass(frozen=True)
class FeaturePart:
    """What one feature did to the score.

    Arguments:
        name: The feature's name, or its column.
        part: How much it moved the score, summed over hops; positive = towards OOD.
        hop: The hop in which it moved the score most.
    """

    name: str
    part: float
    hop: int


@dataclasses.dataclass(frozen=True)
class Nearest:
    """A training node close by.

    Arguments:
        node_id: Its name in the reference graph.
        distance: Euclidean distance of the latents.
        class_name: Its class, or None where it has no label.
    """

    node_id: str
    distance: float
    class_name: str | None


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Why one node got its score.

    Arguments:
        node: The node's row in the graph.
        node_id: Its name.
        score: Its score, higher = more OOD.
        p_value: Its conformal p-value.
        compared_with: Whose mean the parts are measured against.
        hop_parts: How much each hop's features moved the score against that mean; empty where the method has no hops.
        features: The features that raised the score most, the first the most.
        degree: Its number of neighbours.
        neighbour_score: The mean score of its neighbours, NaN without any.
        neighbour_p_value: The median p-value of its neighbours, NaN without any.
        typical_score: The median score of the calibration nodes.
        nearest: The nearest training nodes in latent space; empty without a reference graph or without latents.
    """

    node: int
    node_id: str
    score: float
    p_value: float
    compared_with: str | None
    hop_parts: tuple[float, ...]
    features: tuple[FeaturePart, ...]
    degree: int
    neighbour_score: float
    neighbour_p_value: float
    typical_score: float
    nearest: tuple[Nearest, ...]

    @property
    def main_hop(self) -> int | None:
        """The hop that raised the score most, or None if none did: 0 = the node's own features."""
        if not self.hop_parts or max(self.hop_parts) <= 0:
            return None
        return int(np.argmax(self.hop_parts))

    @property
    def summary(self) -> str:
        """The explanation in a sentence or two."""
        return " ".join([*self._parts_text(), self._context_text()])

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain values, ready for JSON: what is not there is None."""
        document = dataclasses.asdict(self) | {"summary": self.summary}
        return {name: None if value != value else value for name, value in document.items()}

    def _repr_html_(self) -> str:
        return explanation_html(self)

    def _parts_text(self) -> list[str]:
        if not self.hop_parts:
            return ["This method's score cannot be taken apart by hop."]
        if self.main_hop is None:
            return [f"No hop raised the score above {self.compared_with}."]
        where = "its own features" if self.main_hop == 0 else f"hop {self.main_hop}"
        raised = sum(part for part in self.hop_parts if part > 0)
        share = self.hop_parts[self.main_hop] / raised
        names = ", ".join(feature.name for feature in self.features[:3])
        text = f"Raised most by {where} ({share:.0%} of the rise over {self.compared_with})"
        return [f"{text}, through {names}." if names else f"{text}."]

    def _context_text(self) -> str:
        if self.degree == 0:
            return "It has no neighbours."
        standing = "unusual themselves" if self.neighbour_p_value <= 0.05 else "not unusual themselves"
        plural = "neighbour is" if self.degree == 1 else "neighbours are"
        return f"Its {self.degree:,} {plural} {standing} (median p {self.neighbour_p_value:.2g})."


def explain(
    detector: Detector, graph: Any, nodes: ArrayLike, *, reference: Any | None = None, scored: Scored | None = None
) -> list[Explanation]:
    """Explanations of ``nodes``, in their order: see :meth:`degem.Detector.explain`.

    Arguments:
        detector: A fitted detector.
        graph: The graph that holds the nodes.
        nodes: Their indices.
        reference: The training graph, to name the nearest training nodes.
        scored: The graph's scores and probabilities if they are already there.
    """
    graph = as_graph(graph)
    rows = _checked_nodes(nodes, graph)
    if scored is None:
        scored = detector._scored(graph)
    scores, p_values = scored.scores, detector.p_values_of(scored.scores)
    parts = _parts(detector, graph, rows) if isinstance(detector, HopScored) else None
    nearest = _nearest(detector, graph, rows, as_graph(reference)) if reference is not None else [()] * len(rows)
    names = graph.feature_names or detector.feature_names_
    typical = float(np.median(detector.calibration_scores_))
    found = []
    for position, row in enumerate(rows):
        neighbours = graph.adjacency.indices[graph.adjacency.indptr[row] : graph.adjacency.indptr[row + 1]]
        hop_parts = parts.values[position] if parts else np.zeros((0, 0))
        found.append(
            Explanation(
                node=int(row),
                node_id=str(graph.node_ids[row]),
                score=float(scores[row]),
                p_value=float(p_values[row]),
                compared_with=parts.compared_with[position] if parts else None,
                hop_parts=tuple(map(float, hop_parts.sum(axis=1))),
                features=_strongest(hop_parts, names),
                degree=len(neighbours),
                neighbour_score=float(scores[neighbours].mean()) if len(neighbours) else float("nan"),
                neighbour_p_value=float(np.median(p_values[neighbours])) if len(neighbours) else float("nan"),
                typical_score=typical,
                nearest=nearest[position],
            )
        )
    return found


def integrated_gradients(
    detector: HopScored, hops: list[torch.Tensor], baseline: list[torch.Tensor], num_steps: int = NUM_PATH_STEPS
) -> Array:
    r"""What each entry of the hop features added to the score, from ``baseline`` to ``hops``.

    .. math:: (x - x') \odot \frac{1}{m} \sum_{k=1}^{m} \nabla E\left(x' + \tfrac{k - 1/2}{m}(x - x')\right)

    The parts of a node add up to the difference of the two scores, up to the step size
    (Sundararajan et al., *Axiomatic attribution for deep networks*, 2017).

    Arguments:
        detector: Gives the score :math:`E`.
        hops: The hop features :math:`x`, each of shape (k, d₀).
        baseline: What they are compared with, :math:`x'`, of the same shapes.
        num_steps: Steps :math:`m` on the straight line between the two.

    Returns:
        An array of shape (k, L + 1, d₀).
    """
    change = torch.stack(hops, dim=1) - torch.stack(baseline, dim=1)
    start = torch.stack(baseline, dim=1)
    gradient = torch.zeros_like(change)
    for step in range(num_steps):
        point = (start + (step + 0.5) / num_steps * change).detach().requires_grad_()
        with torch.enable_grad():
            energy = detector._score_from_hops(list(point.unbind(dim=1))).sum()
        gradient += torch.autograd.grad(energy, point)[0]
    parts: Array = (change * gradient / num_steps).detach().cpu().numpy()
    return parts


@dataclasses.dataclass(frozen=True)
class _Parts:
    """Parts of the score, (k, L + 1, d₀), and the name of what each node was compared with."""

    values: Array
    compared_with: list[str]


def _parts(detector: Any, graph: Graph, rows: NDArray[np.int64]) -> _Parts:
    """The parts of each node's score against the mean of the class that its own features are closest to.

    The predicted class will not do: a node wired into another class is predicted to be of that class, and then its own
    features look like the fault.
    """
    hops, reference = detector._hop_rows(graph, rows), detector._hop_reference()
    home = torch.cdist(hops[0], reference[0]).argmin(dim=1)
    if len(reference[0]) == 1:
        names = ["the mean training node"]
    else:
        names = [f"the mean of class {name}" for name in class_names(detector)]
    parts = integrated_gradients(detector, hops, [means[home] for means in reference])
    return _Parts(parts, [names[index] for index in home.tolist()])


def class_names(detector: Detector) -> list[str]:
    """The names of a detector's classes, in the order of its probabilities."""
    if detector.class_names_ is None:
        return [str(label) for label in detector.classes_]
    return [detector.class_names_[label] for label in detector.classes_]


def _strongest(parts: Array, names: tuple[str, ...] | None) -> tuple[FeaturePart, ...]:
    """The features that raised the score most; those that lowered it are left out."""
    if parts.size == 0:
        return ()
    totals = parts.sum(axis=0)
    best = np.argsort(-totals, kind="stable")[:NUM_FEATURES]
    return tuple(
        FeaturePart(
            names[column] if names else f"feature {column}", float(totals[column]), int(parts[:, column].argmax())
        )
        for column in best
        if totals[column] > 0
    )


def _nearest(detector: Detector, graph: Graph, rows: NDArray[np.int64], reference: Graph) -> list[tuple[Nearest, ...]]:
    """The nearest of at most ``MAX_REFERENCE_NODES`` training nodes of the reference."""
    from scipy.spatial.distance import cdist  # slow to load, and few explanations name neighbours

    if not detector.has_latents:
        return [()] * len(rows)
    known = reference.masks.get(
        "train", reference.labelled if reference.labelled.any() else np.ones(reference.num_nodes, bool)
    )
    pool = np.flatnonzero(known)
    if len(pool) > MAX_REFERENCE_NODES:
        pool = np.sort(np.random.default_rng(detector.seed).choice(pool, MAX_REFERENCE_NODES, replace=False))
    distances = cdist(detector.embed(graph, nodes=rows), detector.embed(reference, nodes=pool))
    if reference is graph:
        distances[rows[:, None] == pool[None, :]] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")[:, :NUM_NEAREST]
    return [
        tuple(
            Nearest(str(reference.node_ids[pool[column]]), float(line[column]), _class_of(reference, pool[column]))
            for column in columns
            if np.isfinite(line[column])
        )
        for line, columns in zip(distances, order, strict=True)
    ]


def _class_of(graph: Graph, node: int) -> str | None:
    label = int(graph.labels[node])
    if label < 0:
        return None
    return graph.class_names[label] if graph.class_names else str(label)


def _checked_nodes(nodes: ArrayLike, graph: Graph) -> NDArray[np.int64]:
    rows = np.atleast_1d(np.asarray(nodes))
    if rows.dtype == np.bool_ and rows.shape == (graph.num_nodes,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise GraphError("nodes must be indices into the graph, or a mask over its nodes")
    outside = rows[(rows < 0) | (rows >= graph.num_nodes)]
    if len(outside):
        raise GraphError(f"node {outside[0]} does not exist: the graph has nodes 0 … {graph.num_nodes - 1}")
    return rows.astype(np.int64)
