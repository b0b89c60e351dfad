"""What hand-made machinery saves of a whole fit and score, against the plain alternative.

    python benchmarks/machinery.py                              # every part, on six datasets
    python benchmarks/machinery.py --parts langevin_along --datasets cora --epochs 4

A row is a part on a dataset: CPU seconds of a fit and a score with it and without, the shortest of some rounds in which
both take turns. A number as the dataset is a generated graph of so many nodes. The table of docs/architecture.md is
made of such rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import large_graph
import measure
import scipy.sparse as sp
import torch

from degem import Detector, Graph
from degem.data.archives import read_memmap
from degem.data.datasets import load_dataset
from degem.ops.langevin import langevin
from degem.propagation.hop_products import ProjectedFirst, propagation_matrix

DATASETS = "cora,chameleon,actor,amazon-photo,cornell,arxiv-structural"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="of the machinery, separated by commas")
    parser.add_argument("--datasets", default=DATASETS, help="names, or numbers of nodes, separated by commas")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is measured")
    parser.add_argument("--epochs", type=int, default=10, help="of a fit")
    options = parser.parse_args()
    for part in options.parts.split(","):
        for name in options.datasets.split(","):
            print(
                part, name, *measure.in_child(compare, part, name, options.rounds, options.epochs), sep="\t", flush=True
            )


def compare(part: str, name: str, rounds: int, num_epochs: int) -> list[str]:
    """CPU seconds of a fit and of a score, with and without, and what share is saved."""
    graph, (method, without), parameters = load(name), PARTS[part], {"num_epochs": num_epochs}
    sides: dict[str, Callable[[], Any]] = {"with": ExitStack, "without": without}
    taken: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    fit_and_score(method, parameters, measure.planted_graph())
    for _ in range(rounds):
        for side, prepared in sides.items():
            with prepared():
                taken[side].append(fit_and_score(method, parameters, graph))
    cells = []
    for phase, index in (("fit", 0), ("score", 1)):
        ours, plain = (min(pair[index] for pair in taken[side]) for side in sides)
        cells.append(f"{phase} {ours:.2f} against {plain:.2f} s, saves {1 - ours / plain:.0%}")
    return cells


def fit_and_score(method: str, parameters: dict[str, Any], graph: Graph) -> tuple[float, float]:
    """CPU seconds of both."""
    start = time.process_time()
    detector = Detector.registry[method](**parameters).fit(graph)
    fitted = time.process_time()
    detector.decision_function(graph)
    return fitted - start, time.process_time() - fitted


def load(name: str) -> Graph:
    """A dataset, or a generated graph of so many nodes."""
    if not name.isdigit():
        return load_dataset(name)
    folder = Path(tempfile.gettempdir()) / "degem-scale" / name
    if not (folder / "indptr.npy").exists():
        large_graph.write_graph(folder, int(name))
    return read_memmap(folder)


# -- plain alternatives ------------------------------------------------------------------------------------------------


@contextmanager
def propagated_first() -> Iterator[None]:
    with patch("degem.propagation.hop_products.SPARSE_COST", float("inf")):
        yield


@contextmanager
def projected_first() -> Iterator[None]:
    def always(adjacency: Any, features: Any, num_hops: int, *, self_weight: float) -> ProjectedFirst:
        return ProjectedFirst(propagation_matrix(adjacency, self_weight), sp.csr_array(features))

    with (
        patch("degem.detectors.degem_published.detector.hop_products", always),
        patch("degem.detectors.degem_published.trainer.hop_products", always),
    ):
        yield


@contextmanager
def steps_in_full_width() -> Iterator[None]:
    def sample(head: Any, positions: Any, summary: Any, settings: Any, generator: Any) -> Any:
        return langevin(positions, lambda h: head.gradient(h, summary), settings, generator)

    with patch("degem.nn.degem_published.MLPEnergy.sample", sample):
        yield


PUBLISHED = "degem-published"
PARTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "project first where features are sparse": (PUBLISHED, propagated_first),
    "propagate first where they are dense": (PUBLISHED, projected_first),
    "langevin_along": (PUBLISHED, steps_in_full_width),
}


if __name__ == "__main__":
    measure.find_datasets()
    torch.set_num_threads(1)
    main()
