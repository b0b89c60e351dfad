"""What an explanation says of a node, in words, as JSON and in a notebook."""

from __future__ import annotations

import dataclasses
from html import escape
from typing import Any

from degem.explain.parts import Part

ORDINARY = 0.05
NUM_TOLD = 3


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
        typical_score: The mean score of the nodes it is compared with.
        typical_nodes: Their names: ordinary nodes whose own features are most like its own.
        parts: What raises and what lowers the score; they add up to ``score - typical_score``.
        terms: The same difference by the terms of the method's score, where it has such and the node has neighbours.
        degree: Its number of neighbours.
        neighbour_p_value: The median p-value of its neighbours, NaN without any.
        nearest: The nearest training nodes in latent space; empty without a reference graph or without latents.
    """

    node: int
    node_id: str
    score: float
    p_value: float
    typical_score: float
    typical_nodes: tuple[str, ...]
    parts: tuple[Part, ...]
    terms: dict[str, float]
    degree: int
    neighbour_p_value: float
    nearest: tuple[Nearest, ...]

    @property
    def is_ordinary(self) -> bool:
        """Whether there is nothing to explain: more than one in-distribution node in twenty scores as high."""
        return self.p_value > ORDINARY

    def total(self, kind: str) -> float:
        """What the parts of one kind add up to: ``own``, ``neighbours`` or ``surroundings``."""
        return sum(part.amount for part in self.parts if part.kind == kind)

    @property
    def summary(self) -> str:
        """The explanation in a sentence or two."""
        if self.is_ordinary:
            text = f"Ordinary: {self.p_value:.0%} of in-distribution nodes score as high."
        else:
            raising = sorted((part for part in self.parts if part.amount > 0), key=lambda part: -part.amount)
            told = "; ".join(_told(part) for part in raising[:NUM_TOLD])
            text = f"Scores {self.score - self.typical_score:.3g} above ordinary nodes like it: {told}."
        return f"{text} {self._context}"

    @property
    def _context(self) -> str:
        if self.degree == 0:
            return "It has no neighbours."
        standing = "unusual themselves" if self.neighbour_p_value <= ORDINARY else "not unusual themselves"
        plural = "neighbour is" if self.degree == 1 else "neighbours are"
        return f"Its {self.degree:,} {plural} {standing} (median p {self.neighbour_p_value:.2g})."

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain values, ready for JSON: what is not there is None."""
        document = dataclasses.asdict(self) | {"ordinary": self.is_ordinary, "summary": self.summary}
        return {name: None if value != value else value for name, value in document.items()}

    def _repr_html_(self) -> str:
        facts: dict[str, Any] = {
            "score": f"{self.score:.4g} (ordinary nodes like it {self.typical_score:.4g})",
            "p-value": f"{self.p_value:.3g}",
            "why": self.summary,
        }
        facts |= {part.name: f"{part.amount:+.3g} {part.detail}" for part in self.parts}
        if self.nearest:
            facts["nearest"] = ", ".join(f"{node.node_id} ({node.distance:.3g})" for node in self.nearest)
        left = 'style="text-align:left"'
        rows = "".join(
            f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(str(value))}</td></tr>"
            for name, value in facts.items()
        )
        title = f"<caption><b>node {escape(self.node_id)}</b></caption>"
        return f"<table>{title}<tbody>{rows}</tbody></table>"


def _told(part: Part) -> str:
    return f"{part.name}{f' ({part.detail})' if part.detail else ''} {part.amount:+.2g}"
