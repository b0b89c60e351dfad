"""What an explanation says of a node, in words, as JSON and in a notebook."""

from __future__ import annotations

import dataclasses
from html import escape
from typing import Any

import numpy as np


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
        facts: dict[str, Any] = {
            "score": f"{self.score:.4g} (typical {self.typical_score:.4g})",
            "p-value": f"{self.p_value:.3g}",
            "why": self.summary,
        }
        facts |= {f"hop {hop}": f"{part:+.4g}" for hop, part in enumerate(self.hop_parts)}
        if self.features:
            facts["features"] = ", ".join(f"{feature.name} ({feature.part:+.3g})" for feature in self.features)
        if self.nearest:
            facts["nearest"] = ", ".join(f"{node.node_id} ({node.distance:.3g})" for node in self.nearest)
        left = 'style="text-align:left"'
        rows = "".join(
            f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(str(value))}</td></tr>"
            for name, value in facts.items()
        )
        title = f"<caption><b>node {escape(self.node_id)}</b></caption>"
        return f"<table>{title}<tbody>{rows}</tbody></table>"

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
