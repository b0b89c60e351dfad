"""Time and memory from ten thousand to ten million nodes at ten edges a node: is the cost linear?

    python benchmarks/scale.py                          # arxiv-structural, then 10k, 100k, 1M and 10M nodes
    python benchmarks/scale.py --sizes 10000,100000 --datasets ""

Each size has a process of its own, which writes a seeded graph to disk if it is not there yet, opens it as memory maps,
fits DeGEM at its defaults and scores every node. Writing the graph is not counted. The rows go to
``results/scale.csv``; the exponent is the slope of log time over log nodes of the
generated graphs. Memory is the resident memory of the whole process. ``docs/scale.md`` is written from the rows.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import large_graph
import measure
import numpy as np
import pandas as pd

from degem import DeGEM
from degem.data.archives import read_memmap
from degem.data.datasets import load_dataset

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
PARTS = ("propagate", "train", "other")
SHOWN = (
    *("graph", "nodes", "edges", "read_seconds", "fit_seconds", "score_seconds", "fit_peak_mib", "score_peak_mib"),
    *(f"fit_{part}_seconds" for part in PARTS),
)
PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
PAGE_TEXT = """# Speed and scale

Written by `python benchmarks/scale.py` from `benchmarks/results/scale.csv`. Measured on {machine}.

{table}

Generated graphs have ten edges a node and 128 dense features, and lie on disk as memory maps. Time grows with nodes to
the power {fit:.2f} for a fit and {score:.2f} for scoring. Memory is the resident memory of the whole process at its
peak; hop features beyond a quarter of the free memory (`memory_budget`) go to temporary files. A fit trains on a sample
of at most 50,000 nodes, whatever the size of the graph; propagation and scoring touch every node and edge.
`degem fit --dry-run` tells memory, disk and time beforehand. Beyond one machine: [On a cluster](cluster.md).
"""


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
    if not options.no_write:
        write_page()
    for phases in (("fit",), ("score",), ("fit", "score")):
        print(f"{' + '.join(phases)}: time grows with nodes to the power {exponent(rows, *phases):.2f}")


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
    found |= parts(clock)
    with measure.measured() as taken:
        scores = detector.decision_function(graph)
    found |= {"score_seconds": taken.seconds, "score_peak_mib": taken.resident_mib, "mean_score": float(scores.mean())}
    return found


def write_page() -> None:
    """The page of all rows so far."""
    table = pd.read_csv(measure.RESULTS / "scale.csv")
    machine = table.iloc[0]
    shown = [column for column in SHOWN if column in table]
    rounded = table[shown].rename(columns=lambda name: name.replace("_", " ")).map(_text)
    PAGE.write_text(
        PAGE_TEXT.format(
            machine=f"{machine['machine']}, {machine['threads']} threads, PyTorch {machine['torch']}",
            table=measure.markdown_table(rounded).rstrip(),
            fit=exponent(table.to_dict("records"), "fit"),
            score=exponent(table.to_dict("records"), "score"),
        ),
        encoding="utf-8",
    )


def _text(value: Any) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def parts(clock: measure.PhaseClock) -> dict[str, float]:
    """The seconds of each part of a fit."""
    sums = dict.fromkeys(PARTS, 0.0)
    for phase, seconds in clock.seconds.items():
        sums[next((part for part in PARTS if phase.startswith(part)), "other")] += seconds
    return {f"fit_{part}_seconds": seconds for part, seconds in sums.items()}


def exponent(rows: Sequence[Mapping[Any, Any]], *phases: str) -> float:
    """The slope of log seconds over log nodes, of some phases together on generated graphs."""
    rows = [row for row in rows if row["graph"] == "generated"]
    if len(rows) < 2:
        return float("nan")
    seconds = [sum(row[f"{phase}_seconds"] for phase in phases) for row in rows]
    return float(np.polyfit(np.log([row["nodes"] for row in rows]), np.log(seconds), 1)[0])


if __name__ == "__main__":
    measure.find_datasets()
    main()
