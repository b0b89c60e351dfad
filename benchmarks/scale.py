"""Time and memory from ten thousand to ten million nodes at ten edges a node: is the cost linear?

    python benchmarks/scale.py                          # arxiv-structural, then 10k, 100k, 1M and 10M nodes
    python benchmarks/scale.py --sizes 10000,100000 --datasets ""

Each size has a process of its own, which writes a seeded graph to disk if it is not there yet, opens it as memory maps,
fits DeGEM at its defaults and scores every node. Writing the graph is not counted. The rows go to
``results/scale.csv``, the plot to ``results/scale.png``; the exponent is the slope of log time over log nodes of the
generated graphs. Memory is the resident memory of the whole process.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import large_graph
import matplotlib as mpl
import measure
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from degem import DeGEM
from degem.data.datasets import load_dataset
from degem.data.memmap import read_memmap
from degem.training import reporting_to

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
PHASES = ("read", "fit", "score")
PARTS = ("propagate", "train", "score", "other")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of nodes, separated by commas")
    parser.add_argument("--datasets", default="arxiv-structural", help="datasets by name, separated by commas")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "degem-scale", help="of the graphs"
    )
    parser.add_argument("--no-write", action="store_true", help="leave benchmarks/results as it is")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in filter(None, [*options.datasets.split(","), *options.sizes.split(",")]):
        rows.append(measure.in_child(run, name, options.folder))
        print(pd.DataFrame(rows[-1:]).to_string(index=False, header=len(rows) == 1), flush=True)
        if not options.no_write:  # after each size: a run that is broken off keeps what it measured
            measure.write(rows[-1:], "scale", key=["graph", "nodes"])
    for phase in ("fit", "score"):
        print(f"{phase}: time grows with nodes to the power {exponent(rows, phase):.2f}")
    if not options.no_write:
        plot(rows, measure.RESULTS / "scale.png")


def run(name: str, folder: Path) -> dict[str, Any]:
    """Seconds and peak resident memory of each phase, on a dataset or on a generated graph of so many nodes."""
    home = folder / name
    written = None
    if name.isdigit() and not (home / "indptr.npy").exists():
        with measure.measured() as taken:
            large_graph.write_graph(home, int(name))
        written = taken.seconds
    DeGEM().fit(measure.planted_graph())
    with measure.measured() as taken:
        graph = read_memmap(home) if name.isdigit() else load_dataset(name)
    found: dict[str, Any] = {"graph": "generated" if name.isdigit() else name, "nodes": graph.num_nodes}
    found |= {"edges": graph.num_edges, "write_seconds": written}
    found |= {"read_seconds": taken.seconds, "read_peak_mib": taken.resident_mib}
    clock = measure.PhaseClock()
    with measure.measured() as taken:
        detector = DeGEM().fit(graph, on_progress=clock)
    found |= {"fit_seconds": taken.seconds, "fit_peak_mib": taken.resident_mib}
    found |= parts("fit", clock)
    clock = measure.PhaseClock()
    with measure.measured() as taken, reporting_to(clock):
        scores = detector.decision_function(graph)
    found |= parts("score", clock)
    found |= {"score_seconds": taken.seconds, "score_peak_mib": taken.resident_mib, "mean_score": float(scores.mean())}
    return found


def parts(what: str, clock: measure.PhaseClock) -> dict[str, float]:
    """The seconds of each part of a fit or of scoring."""
    sums = dict.fromkeys(PARTS, 0.0)
    for phase, seconds in clock.seconds.items():
        sums[next((part for part in PARTS if phase.startswith(part)), "other")] += seconds
    return {f"{what}_{part}_seconds": seconds for part, seconds in sums.items()}


def exponent(rows: list[dict[str, Any]], phase: str) -> float:
    """The slope of log seconds over log nodes, of generated graphs."""
    rows = [row for row in rows if row["graph"] == "generated"]
    if len(rows) < 2:
        return float("nan")
    nodes, seconds = (np.log([row[name] for row in rows]) for name in ("nodes", f"{phase}_seconds"))
    return float(np.polyfit(nodes, seconds, 1)[0])


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Seconds and peak memory over nodes, on logarithmic axes."""
    mpl.use("Agg")
    rows = [row for row in rows if row["graph"] == "generated"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    nodes = [row["nodes"] for row in rows]
    for phase in PHASES:
        label = phase if phase == "read" else f"{phase}: exponent {exponent(rows, phase):.2f}"
        left.loglog(nodes, [row[f"{phase}_seconds"] for row in rows], marker="o", label=label)
        right.loglog(nodes, [row[f"{phase}_peak_mib"] / 1024 for row in rows], marker="o", label=phase)
    left.set(xlabel="nodes", ylabel="seconds")
    right.set(xlabel="nodes", ylabel="peak resident memory, GiB")
    left.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    measure.find_datasets()
    main()
