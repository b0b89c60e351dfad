"""The graph and its scores as of an event: what readers see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.serve.scoring import Scored, Scoring


@dataclass(frozen=True)
class Snapshot:
    """The graph and its scores as of an event. It never changes; only ids behind its rows are added.

    Arguments:
        event: The last event that is in it.
        refreshed: When it was made.
        ids: The id of each row, and of later ones.
        row_of: The row of each id, and of later ones.
        alive: Which rows are there.
        adjacency: The edges.
        scored: The scores.
        scoring: What made them, for provisional scores.
    """

    event: int
    refreshed: float
    ids: Sequence[str]
    row_of: dict[str, int]
    alive: NDArray[np.bool_]
    adjacency: sp.csr_array
    scored: Scored
    scoring: Scoring

    def row(self, node: str) -> int | None:
        """The row of a node that is there."""
        row = self.row_of.get(node)
        return row if row is not None and row < len(self.alive) and self.alive[row] else None

    def neighbours(self, row: int) -> NDArray[np.int64]:
        """The rows of a node's neighbours."""
        return np.asarray(self.adjacency.indices[self.adjacency.indptr[row] : self.adjacency.indptr[row + 1]])

    def around(self, row: int, depth: int, most: int) -> tuple[list[int], list[list[int]], bool]:
        """The surroundings of a node: rows, the nearest first, and pairs of places in these that edges join.

        Arguments:
            row: The node.
            depth: How many steps away the farthest are.
            most: How many rows there may be; the last value tells whether there were more.
        """
        found, rim = {row: None}, [row]
        for _ in range(depth):
            if len(found) > most:
                break
            near = np.unique(np.concatenate([self.neighbours(each) for each in rim])).tolist() if rim else []
            rim = [each for each in near if each not in found]
            found.update(dict.fromkeys(rim))
        rows = list(found)[:most]
        place_of = {each: place for place, each in enumerate(rows)}
        edges = [
            [place, place_of[other]]
            for place, each in enumerate(rows)
            for other in self.neighbours(each).tolist()
            if other in place_of and each < other
        ]
        return rows, edges, len(found) > most
