"""How DeGEM's AUROC depends on how much of the graph was there at training: what the inductive protocol costs, and why.

``python benchmarks/new_nodes.py`` fits on graphs from which a share of the other ID nodes (and every OOD node) was
taken away, scores on the whole graphs, and writes ``benchmarks/results/new_nodes.csv`` and ``docs/new-nodes.md``.
A share p of the nodes keeps about p² of the edges: the table says both.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import measure
import numpy as np
import pandas as pd

from degem import DeGEM
from degem.bench.protocols import fit, judge
from degem.graph import Graph
from degem.shifts.base import Settings
from degem.shifts.scenarios import KINDS, kind_of, load_scenario, shifts_of

PAGE = Path(__file__).parents[1] / "docs" / "new-nodes.md"
ABSENT = (0.0, 0.25, 0.5, 0.75, 1.0)
KEY = ["dataset"]  # of what is measured in one go
INTRODUCTION = """# New nodes

Written by `python benchmarks/new_nodes.py` from `benchmarks/results/new_nodes.csv`. DeGEM's default is fitted on a
graph without any OOD node and without a share of the ID nodes that are neither for training nor for validation, and
then scores the whole graphs: AUROC in percent, mean over seeds ({seeds}); *edges* is the share of edges that the
training graph keeps. All of them absent is the inductive protocol, but on Cora, whose public split leaves nodes without
a part.

"""


def thinned(graph: Graph, share: float, rng: np.random.Generator) -> Graph:
    """The graph without a share of the nodes that are neither for training nor for validation."""
    others = np.flatnonzero(~(graph.masks["train"] | graph.masks["val"]))
    keep = np.ones(graph.num_nodes, dtype=np.bool_)
    keep[rng.permutation(others)[: round(share * len(others))]] = False
    return graph.subgraph(keep)


def rows(dataset: str, seed: int) -> Iterator[dict[str, object]]:
    """AUROC and accuracy by shift and share of absent nodes."""
    for kind in dict.fromkeys(map(kind_of, shifts_of(dataset))):
        scenario = load_scenario(dataset, kind, Settings(seed=seed, without_ood=True))
        whole = scenario.train_graph
        for share in ABSENT:
            graph = thinned(whole, share, np.random.default_rng(seed))
            detector = DeGEM(seed=seed)
            seconds = fit(detector, graph, None)
            shifts = [shift for shift in shifts_of(dataset) if shift in KINDS[kind]]
            found = judge(detector, dataclasses.replace(scenario, train_graph=graph), shifts, seconds)
            for shift, outcome in found.items():
                yield {
                    "dataset": dataset,
                    "shift": shift,
                    "seed": seed,
                    "absent": share,
                    "edges": graph.adjacency.nnz / max(whole.adjacency.nnz, 1),
                    "auroc": outcome.metrics.auroc,
                    "acc": outcome.acc,
                }


def page(frame: pd.DataFrame) -> str:
    """The Markdown page of the rows."""
    named = frame.assign(share=[f"{absent:.0%} absent" for absent in frame["absent"]])
    auroc, edges = (
        named.pivot_table(index=["dataset", "shift"], columns="share", values=what, sort=False)
        for what in ("auroc", "edges")
    )
    cells = auroc.map("{:.1f}".format)
    cells["edges"] = [", ".join(f"{kept:.0%}" for kept in row) for row in edges.to_numpy()]
    return INTRODUCTION.format(seeds=measure.num_seeds(frame, KEY)) + measure.markdown_table(cells.reset_index())


def store(found: list[dict[str, object]]) -> None:
    """Keep the rows beside those of what was not measured now, and write the page of all."""
    path = measure.write(found, "new_nodes", key=KEY)
    PAGE.write_text(page(pd.read_csv(path)), encoding="utf-8")


def main() -> None:
    """Measure, store, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", default="cora,chameleon,actor,cornell")
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    measure.find_datasets()
    for dataset in asked.datasets.split(","):
        store([row for seed in range(asked.seeds) for row in rows(dataset, seed)])
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
