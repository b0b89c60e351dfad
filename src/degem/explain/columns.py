"""The columns of a node table behind the features: what a node has there, and what is usual."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from degem.detectors.base import Detector
from degem.graph import Graph
from degem.schema import ColumnSchema

Array = NDArray[np.floating[Any]]
USUAL = (0.1, 0.9)
MONTHS: list[str] = list(calendar.month_name)[1:]


@dataclass(frozen=True)
class Column:
    """One column of the user's, and the features it became."""

    name: str
    positions: NDArray[np.int64]  # where its features are
    labels: tuple[str, ...]  # names of these features
    schema: ColumnSchema  # how it was encoded

    def told(self, values: Array) -> str:
        """What one node has there, in the user's units; of a date the month."""
        if "missing" in (found := self._marked(values)):
            return "missing"
        if self.schema.treatment == "category":
            return ", ".join(found) or "a new category"
        if self.schema.treatment in ("date", "time"):
            return MONTHS[int(self._months(values[None])[0])]
        return self._number(values[0])

    def usual(self, rows: Array) -> str:
        """What is usual among some nodes: the range of the middle 80 %, or the most frequent categories or months."""
        if self.schema.treatment == "category":
            found = (rows > 0).mean(axis=0)
            return ", ".join(f"{self._short(place)} {found[place]:.0%}" for place in np.argsort(found)[::-1][:2])
        if self.schema.treatment in ("date", "time"):
            shares = np.bincount(self._months(rows), minlength=len(MONTHS)) / len(rows)
            return ", ".join(f"{MONTHS[month]} {shares[month]:.0%}" for month in np.argsort(shares)[::-1][:2])
        low, high = (self._number(bound) for bound in np.quantile(rows[:, 0], USUAL))
        return low if low == high else f"{low} – {high}"

    def _months(self, rows: Array) -> NDArray[np.int64]:
        """The month of each date: its season is an angle."""
        sine, cosine = (self.labels.index(f"{self.name} (season, {part})") for part in ("sine", "cosine"))
        turns = np.arctan2(rows[:, sine], rows[:, cosine]) / (2 * np.pi) % 1
        return np.asarray(turns * len(MONTHS), dtype=np.int64) % len(MONTHS)

    def _marked(self, values: Array) -> list[str]:
        """What is true of the node, of the features that are indicators."""
        is_category = self.schema.treatment == "category"
        marks = (place for place, label in enumerate(self.labels) if is_category or label.endswith(" (missing)"))
        return [self._short(place) for place in marks if values[place] > 0]

    def _short(self, place: int) -> str:
        label = self.labels[place].removeprefix(self.name)
        return label[1:] if label.startswith("=") else label.strip(" ()")

    def _number(self, value: float) -> str:
        schema = self.schema
        if schema.treatment == "as is":
            return f"{value:.4g}"
        z = np.sign(value) * np.expm1(abs(value)) if schema.treatment == "skewed" else value
        number = z * schema.scale + schema.center
        return ("true" if number > 0.5 else "false") if schema.treatment == "boolean" else f"{number:.4g}"


def columns_of(detector: Detector, graph: Graph) -> list[Column]:
    """The columns of a graph's features, in their order.

    Example:
        >>> from degem.data.demo import digits_graph
        >>> from degem.detectors.trivial import Degree
        >>> graph = digits_graph()
        >>> columns_of(Degree().fit(graph), graph)[1].told(np.array([3.0]))
        '3'
    """
    count = graph.num_features
    names = graph.feature_names or detector.feature_names_ or tuple(f"feature {place}" for place in range(count))
    place_of = {name: place for place, name in enumerate(names)}
    found: list[Column] = []
    for column in detector.schema_.used if detector.schema_ is not None else ():
        nothing = np.zeros(0, dtype=object if column.treatment == "category" else np.float64)
        labels = tuple(label for label, _ in column.features(nothing) if label in place_of)
        if labels:
            found.append(Column(column.name, np.array([place_of[label] for label in labels]), labels, column))
    covered = {label for column in found for label in column.labels}
    rest = [name for name in names if name not in covered]
    raw = (
        Column(name, np.array([place_of[name]]), (name,), ColumnSchema(name=name, treatment="as is")) for name in rest
    )
    return [*found, *raw]
