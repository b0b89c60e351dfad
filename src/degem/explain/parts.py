"""What a score's difference from that of ordinary nodes is made of, in parts that add up to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["own", "neighbours", "surroundings"]
Candidate = tuple[str, float, Callable[[], str]]  # a name, an amount, and what tells the detail
NUM_SHOWN, LEAST_SHARE = 5, 1e-3


@dataclass(frozen=True)
class Part:
    """One part of the difference.

    Arguments:
        kind: What it is about: the node's own columns, its neighbours, or what lies beyond.
        name: The column, the neighbour, or what stands for the rest of its kind.
        amount: How much it raises the score, negative where it lowers it.
        detail: What the node has there, and what is usual.
    """

    kind: Kind
    name: str
    amount: float
    detail: str = ""


def listed(kind: Kind, rest: str, total: float, candidates: Sequence[Candidate]) -> list[Part]:
    """The largest of some parts, and one for what they lack to the total of their kind.

    Example:
        >>> [part.amount for part in listed("own", "rest", 3.0, [("a", 2.0, str), ("b", 0.0, str)])]
        [2.0, 1.0]
    """
    largest = sorted(candidates, key=lambda candidate: -abs(candidate[1]))[:NUM_SHOWN]
    least = LEAST_SHARE * max((abs(amount) for _, amount, _ in largest), default=0)
    parts = [Part(kind, name, amount, detail()) for name, amount, detail in largest if abs(amount) > least]
    return [*parts, Part(kind, rest, total - sum(part.amount for part in parts))]
