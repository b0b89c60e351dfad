"""Does it help to keep in- and out-neighbourhoods apart? Arrival on Chameleon and Actor, whose edges have a direction.

Run ``python benchmarks/direction.py``. Beside a node's own features stand means over its neighbours, twice: over all of
them ("together"), or over those its edges come from and those they go to ("apart"). The methods see the same number of
columns. New edges of the shift structure get a direction at random. It prints AUROC, one line a cell and method.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp
from directed_edges import stored_edges
from sklearn.metrics import roc_auc_score

from degem import Detector, Graph
from degem.data.datasets import load_dataset
from degem.shifts.arrival import Growth
from degem.shifts.arrival_scenarios import load_arrival
from degem.shifts.base import Settings

METHODS = ("degem", "feature-knn", "ecod", "iforest")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=("chameleon", "actor"))
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    print("dataset, shift, method, together, apart")
    for dataset in arguments.datasets:
        for kind in ("manipulation", "label"):
            runs = [_aurocs(dataset, kind, arguments.methods, seed) for seed in range(arguments.seeds)]
            for shift, method in runs[0]:
                means = np.mean([run[shift, method] for run in runs], axis=0)
                print(dataset, shift, method, *(f"{100 * value:.1f}" for value in means), sep=", ", flush=True)


def _aurocs(dataset: str, kind: str, methods: list[str], seed: int) -> dict[tuple[str, str], list[float]]:
    """AUROC together and apart, by shift and method."""
    arrival = load_arrival(dataset, kind, Settings(seed=seed))
    stored = stored_edges(dataset, load_dataset(dataset).num_nodes)
    found: dict[tuple[str, str], list[float]] = {}
    for method in methods:
        for apart in (False, True):
            detector = Detector.registry[method](seed=seed).fit(_with_means(arrival.train_graph, stored, apart, seed))
            for shift, growth in arrival.grown.items():
                grown = _with_means(growth.graph, stored, apart, seed)
                found.setdefault((shift, method), []).append(_auroc(detector, grown, growth))
    return found


def _auroc(detector: Detector, graph: Graph, growth: Growth) -> float:
    new = np.concatenate([growth.new_id, growth.ood])
    return float(roc_auc_score(np.isin(new, growth.ood), detector.decision_function(graph)[new]))


def _with_means(graph: Graph, stored: sp.csr_array, apart: bool, seed: int) -> Graph:
    """The graph with two blocks of means over neighbours beside its features."""
    one_way = _directed(graph, stored, seed)
    sides = (one_way, sp.csr_array(one_way.T)) if apart else (graph.adjacency, graph.adjacency)
    features = sp.csr_array(graph.features)
    degrees = [np.maximum(side.sum(axis=1), 1) for side in sides]
    means = [sp.diags_array(1 / degree) @ side @ features for degree, side in zip(degrees, sides, strict=True)]
    return graph.replace(features=sp.csr_array(sp.hstack([features, *means])), feature_names=None)


def _directed(graph: Graph, stored: sp.csr_array, seed: int) -> sp.csr_array:
    """The edges with their stored directions; those that are not stored go one way at random."""
    ids, edges = graph.node_ids.astype(np.int64), sp.triu(graph.adjacency).tocoo()
    ends = np.stack(edges.coords)
    there, back = (np.asarray(stored[ids[one], ids[other]]).ravel() != 0 for one, other in (ends, ends[::-1]))
    first = np.random.default_rng(seed).random(len(there)) < 0.5
    there, back = there | (~back & first), back | (~there & ~first)
    pairs = np.concatenate([ends[:, there], ends[::-1][:, back]], axis=1)
    return sp.csr_array((np.ones(pairs.shape[1], dtype=np.float32), tuple(pairs)), shape=graph.adjacency.shape)


if __name__ == "__main__":
    main()
