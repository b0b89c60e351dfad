"""The graph on the disk, with the event that it is as of: where a server that starts again goes on."""

from __future__ import annotations

from pathlib import Path

from degem.calibration import Calibration
from degem.data.archives import read_npz, write_npz
from degem.graph import Graph
from degem.serve.live_graph import NAMES, LiveGraph

KEPT = 2


class SavedGraphs:
    """Graphs in a folder, the last two of them.

    Arguments:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, live: LiveGraph) -> None:
        """Write a graph, if it is not there."""
        path = self.folder / f"graph-{live.event}.npz"
        if not path.exists():
            write_npz(live.graph(), path)
        for old in self._paths()[:-KEPT]:
            old.unlink(missing_ok=True)

    def recovered(self, graph: Graph, calibration: Calibration) -> tuple[LiveGraph, bool]:
        """The last graph, and whether it holds the calibration nodes, which join it where the model has kept them.

        Arguments:
            graph: The graph that the first event met.
            calibration: Its calibration nodes.
        """
        whole, rows = calibration.joined(graph)
        names = LiveGraph(whole).names
        if rows is not None:  # kept nodes that have joined have other ids
            names = names.copy()
            names[rows[rows >= 0]] = calibration.nodes.ids[rows >= 0]
        paths = self._paths()
        if paths:
            return LiveGraph(read_npz(paths[-1]), _event_of(paths[-1])), rows is not None
        return LiveGraph(whole.replace(columns={NAMES: names})), rows is not None

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob("graph-*.npz"), key=_event_of)


def _event_of(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])
