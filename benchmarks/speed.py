"""How fast the library is, against what a user would otherwise have.

    python benchmarks/speed.py                                  # every dataset, the transcription runs whole
    python benchmarks/speed.py --datasets cora --json           # rows as JSON on stdout
    python benchmarks/speed.py --datasets cora --epochs 20      # 20 epochs of the transcription, scaled up to 200
    python benchmarks/speed.py --what sample,propagate,score    # without the fits: minutes

``fit`` is DeGEM at its defaults against the transcription of the paper's Algorithm 1 (``transcription.py``), one row a
shift; ``sample`` is the Langevin sampler against the same chains through autograd; ``propagate`` is one hop against the
fastest of four other sparse kernels; ``score`` is scoring a whole graph against the matrix products in it alone. A
second table sets the fit beside those of other methods. Each fit runs in a process of its own, after a small fit that
loads libraries and compiled kernels; ``peak_mib`` is by how much resident memory rose during the fit at its peak.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from dataclasses import replace
from typing import Any

import measure
import numba
import numpy as np
import scipy.sparse as sp
import torch
import transcription
from numpy.typing import NDArray
from products import bare_products

from degem import DeGEM, Detector
from degem.metrics import auroc_ood_positive
from degem.nn.heads import MLPEnergy
from degem.ops.features import to_tensor
from degem.ops.langevin import LangevinSettings
from degem.ops.neighbours import average
from degem.shifts import Scenario, Settings, load_scenario
from degem.shifts.scenarios import kind_of, shifts_of

DATASETS = ("cora", "chameleon", "actor", "amazon-photo", "cornell", "twitch")
RIVALS = ("msp", "gnnsafe")
EPOCHS = 200
WHAT = ("fit", "sample", "propagate", "score")
REPEATS = 3
WIDTH = 128
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default=",".join(DATASETS), help="names, separated by commas")
    parser.add_argument("--what", default=",".join(WHAT), help="what to measure, separated by commas")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument(
        "--epochs",
        type=int,
        default=EPOCHS,
        help=f"epochs of the transcription that are run; below {EPOCHS} its time is scaled up and marked so",
    )
    parser.add_argument("--no-write", action="store_true", help="leave benchmarks/results as it is")
    options = parser.parse_args()
    wanted = options.what.split(",")
    if not set(wanted) <= set(WHAT):
        parser.error(f"--what may name {', '.join(WHAT)}, got {options.what}")
    rows: list[Row] = []
    rivals: list[Row] = []
    for dataset, what in itertools.product(options.datasets.split(","), wanted):
        new = fit_rows(dataset, options.epochs) if what == "fit" else [measure.in_child(PARTS[what], dataset)]
        beside = rival_rows(dataset, new) if what == "fit" else []
        rows, rivals = rows + new, rivals + beside
        if not options.no_write:  # one after the other: a run that is broken off keeps what it measured
            measure.write(new, "speed", key=["dataset", "what"])
            if beside:
                measure.write(beside, "fit-times", key=["dataset"])
    if options.json:
        print(measure.machine(), file=sys.stderr)
        json.dump(rows, sys.stdout, indent=1)
        return
    print(f"{measure.machine()}\n")
    print_table(rows, ["what", "dataset", "shift", "seconds", "baseline_seconds", "speedup", "baseline"])
    print_table(
        [row for row in rows if row["what"] == "fit"],
        ["dataset", "shift", "peak_mib", "baseline_peak_mib", "auroc", "baseline_auroc"],
    )
    print_table(rivals, ["dataset", "kind", "method", "seconds", "degem_seconds", "ratio"])


def fit_rows(dataset: str, epochs: int) -> list[Row]:
    """A row a shift of one dataset."""
    rows: list[Row] = []
    for kind in kinds(dataset):
        ours = measure.in_child(fit_ours, dataset, kind, "degem")
        plain = measure.in_child(fit_transcription, dataset, kind, epochs)
        for shift in ours["aurocs"]:
            rows.append(
                row("fit", dataset, ours["seconds"], plain["seconds"], plain["name"], shift)
                | {
                    "peak_mib": ours["peak_mib"],
                    "baseline_peak_mib": plain["peak_mib"],
                    "auroc": ours["aurocs"][shift],
                    "baseline_auroc": plain["aurocs"][shift],
                }
            )
    return rows


def kinds(dataset: str) -> list[str]:
    """The kinds of shift of a dataset: each has a training graph of its own."""
    return list(dict.fromkeys(kind_of(shift) for shift in shifts_of(dataset)))


def row(what: str, dataset: str, seconds: float, baseline_seconds: float, baseline: str, shift: str = "") -> Row:
    """A row of the table, its memory and AUROC still open."""
    return {
        "what": what,
        "dataset": dataset,
        "seconds": seconds,
        "baseline_seconds": baseline_seconds,
        "speedup": baseline_seconds / seconds,
        "peak_mib": None,
        "baseline_peak_mib": None,
        "auroc": None,
        "baseline_auroc": None,
        "shift": shift,
        "baseline": baseline,
    }


# -- fit ---------------------------------------------------------------------------------------------------------------


def fit_ours(dataset: str, kind: str, method: str) -> Row:
    """The median time and peak memory of a method's fit, and its AUROC on each shift."""
    scenario = load_scenario(dataset, kind, Settings())
    make = Detector.registry[method]
    make().fit(measure.planted_graph())
    times, peaks = [], []
    for _ in range(REPEATS):
        with measure.measured() as taken:
            detector = make().fit(scenario.train_graph)
        times.append(taken.seconds)
        peaks.append(taken.peak_mib)
    return {
        "seconds": statistics.median(times),
        "peak_mib": max(peaks),
        "aurocs": aurocs(scenario, detector.decision_function),
    }


def fit_transcription(dataset: str, kind: str, epochs: int) -> Row:
    """The same of the transcription."""
    scenario = load_scenario(dataset, kind, Settings())
    nodes = np.flatnonzero(scenario.train_graph.masks["train"])
    settings = replace(transcription.Settings(), num_epochs=epochs)
    with measure.measured() as taken:
        model, summary = transcription.fit(scenario.train_graph, nodes, settings)
    scaled = epochs < EPOCHS
    return {
        "seconds": taken.seconds * (EPOCHS / epochs if scaled else 1),
        "peak_mib": taken.peak_mib,
        "name": f"transcription, scaled up from {epochs} epochs" if scaled else "transcription",
        "aurocs": aurocs(scenario, lambda graph: transcription.score(model, summary, graph)),
    }


def aurocs(scenario: Scenario, score: Any) -> dict[str, float]:
    """AUROC in % of each shift, OOD as the class to find."""
    inside = score(scenario.id_test.graph)[scenario.id_test.nodes]
    return {
        shift: 100 * auroc_ood_positive(inside, score(where.graph)[where.nodes])
        for shift, where in scenario.ood.items()
    }


def rival_rows(dataset: str, fits: list[Row]) -> list[Row]:
    """The fits of other methods beside DeGEM's."""
    rows = []
    for kind in kinds(dataset):
        ours = next(row["seconds"] for row in fits if kind_of(row["shift"]) == kind)
        for method in RIVALS:
            seconds = measure.in_child(fit_ours, dataset, kind, method)["seconds"]
            rows.append(
                {
                    "dataset": dataset,
                    "kind": kind,
                    "method": method,
                    "seconds": seconds,
                    "degem_seconds": ours,
                    "ratio": ours / seconds,
                }
            )
    return rows


# -- parts -------------------------------------------------------------------------------------------------------------


def training_graph(dataset: str) -> Any:
    """The training graph of a dataset's first kind of shift."""
    return load_scenario(dataset, kinds(dataset)[0], Settings()).train_graph


def sample_row(dataset: str) -> Row:
    """K Langevin steps of as many chains as training nodes, at the paper's settings."""
    graph = training_graph(dataset)
    plain = transcription.Model(8, 2, transcription.Settings()).eval()
    dim = plain.settings.latent_dim
    head = MLPEnergy(dim, plain.settings.head_dim, batch_norm=True).eval()
    chains, summary = torch.rand(int(graph.masks["train"].sum()), dim), torch.rand(dim)
    settings, generator = LangevinSettings(), torch.Generator().manual_seed(0)
    fast, slow = measure.best_of(
        lambda: head.sample(chains, summary, settings, generator), lambda: transcription.sample(plain, chains, summary)
    )
    return row("sample", dataset, fast, slow, "autograd")


def propagate_row(dataset: str) -> Row:
    """One hop of 128 columns."""
    adjacency = training_graph(dataset).adjacency
    x = np.random.default_rng(0).standard_normal((adjacency.shape[0], WIDTH), dtype=np.float32)
    out = np.empty_like(x)
    others = other_kernels(adjacency, x)
    seconds, *times = measure.best_of(lambda: average(adjacency, x, self_weight=0.0, out=out), *others.values())
    kernels = dict(zip(others, times, strict=True))
    fastest = min(kernels, key=kernels.__getitem__)
    return row("propagate", dataset, seconds, kernels[fastest], fastest)


def other_kernels(adjacency: sp.csr_array, x: NDArray[np.float32]) -> dict[str, Any]:
    """The same product by other means."""
    matrix = transition_matrix(adjacency)
    tensor, dense, out = to_tensor(matrix), torch.from_numpy(x), np.empty_like(x)
    return {
        "numba": lambda: _plain_product(matrix.indptr, matrix.indices, matrix.data, x, out),
        "scipy": lambda: matrix @ x,
        "torch.sparse.mm": lambda: torch.sparse.mm(tensor, dense, "sum"),
        "torch CSR": lambda: tensor @ dense,
    }


def transition_matrix(adjacency: sp.csr_array) -> sp.csr_array:
    """The matrix whose product with values is their mean over neighbours."""
    degrees = np.diff(adjacency.indptr)
    shares = np.repeat(1 / np.maximum(degrees, 1), degrees).astype(np.float32)
    return sp.csr_array((shares, adjacency.indices, adjacency.indptr), shape=adjacency.shape)


@numba.njit(parallel=True, cache=True, fastmath=True)
def _plain_product(indptr: Any, indices: Any, data: Any, x: Any, out: Any) -> None:
    for i in numba.prange(x.shape[0]):
        for c in range(x.shape[1]):
            out[i, c] = 0
        for entry in range(indptr[i], indptr[i + 1]):
            for c in range(x.shape[1]):
                out[i, c] += data[entry] * x[indices[entry], c]


def score_row(dataset: str) -> Row:
    """Every score of the training graph."""
    graph = training_graph(dataset)
    detector = DeGEM().fit(graph)
    seconds, bare = measure.best_of(lambda: detector.decision_function(graph), bare_products(detector, graph))
    return row("score", dataset, seconds, bare, "bare products")


PARTS = {"sample": sample_row, "propagate": propagate_row, "score": score_row}


def print_table(rows: list[Row], columns: list[str]) -> None:
    """Rows as text; nothing where there are none."""
    import pandas as pd

    if rows:
        print(pd.DataFrame(rows)[columns].to_string(index=False, float_format="{:.4g}".format), "\n")


if __name__ == "__main__":
    measure.find_datasets()
    main()
