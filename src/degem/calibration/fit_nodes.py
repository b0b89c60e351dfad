"""Which nodes were there at a fit, and which of them it learnt from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from degem.calibration.known import hashed
from degem.graph import Graph
from degem.model_file import tensor_of


@dataclass(frozen=True)
class FitNodes:
    """The nodes of the graph of a fit, as hashes of their ids.

    Arguments:
        present: All of them, sorted.
        seen: Those of the training graph, sorted: all but the calibration nodes.
    """

    present: NDArray[np.int64]
    seen: NDArray[np.int64]

    @classmethod
    def of(cls, graph: Graph, training_graph: Graph) -> FitNodes:
        """The nodes of a graph, and those of the training graph that was made of it.

        Example:
            >>> graph = Graph.from_arrays(features=np.eye(2), edges=[(0, 1)], node_ids=["a", "b"])
            >>> FitNodes.of(graph, graph.subgraph([0])).new_in(graph)
            array([False, False])
        """
        return cls(np.sort(hashed(graph.node_ids)), np.sort(hashed(training_graph.node_ids)))

    def new_in(self, graph: Graph) -> NDArray[np.bool_]:
        """Which nodes of a graph were not there at the fit."""
        return ~np.isin(hashed(graph.node_ids), self.present)

    def seen_in(self, graph: Graph) -> NDArray[np.bool_]:
        """Which nodes of a graph the fit has seen."""
        return np.isin(hashed(graph.node_ids), self.seen)

    def state(self) -> dict[str, torch.Tensor]:
        """The hashes, as named tensors."""
        return {"present": torch.from_numpy(np.array(self.present)), "seen": torch.from_numpy(np.array(self.seen))}

    @classmethod
    def restored(cls, state: dict[str, torch.Tensor], prefix: str) -> FitNodes:
        """The inverse of :meth:`state`, from tensors whose names begin with a prefix."""
        return cls(*(tensor_of(state, f"{prefix}{name}", torch.int64, None).numpy() for name in ("present", "seen")))
