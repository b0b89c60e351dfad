"""Does it help to keep in- and out-neighbourhoods apart? Arrival on graphs whose edges have a direction.

    python benchmarks/direction.py                                            # Chameleon and Actor, seeds 0 and 1
    python benchmarks/direction.py --datasets arxiv-structural --seeds 1

Beside a node's own features stand means over its neighbours, twice: over all of
them ("together"), or over those its edges come from and those they go to ("apart"). The methods see the same number of
columns. New edges of the shift structure get a direction at random, which alone tells them from real ones where these
have a rule; "drawn" gives every edge a direction at random instead of its own: what it gains over "together" is not due
to direction. Writes ``results/direction.csv``, AUROC in percent, one row a cell, method and seed.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import measure
import numpy as np
import pandas as pd
import scipy.sparse as sp
from directed_edges import stored_edges
from sklearn.metrics import roc_auc_score

from degem import Detector, Graph
from degem.data.datasets import data_root, load_dataset
from degem.shifts.arrival import Growth
from degem.shifts.arrival_scenarios import arrivals_of, load_arrival
from degem.shifts.base import Settings
from degem.shifts.scenarios import kind_of

METHODS, WAYS = ("degem", "iforest"), ("together", "apart", "drawn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=("chameleon", "actor"))
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    for dataset in arguments.datasets:
        rows = [row for seed in range(arguments.seeds) for row in measured(dataset, arguments.methods, seed)]
        measure.write(rows, "direction", key=["dataset"])
        means = pd.DataFrame(rows).groupby(["dataset", "shift", "method"], sort=False)[list(WAYS)].mean()
        print(means.round(1).to_string(), flush=True)


def measured(dataset: str, methods: Sequence[str], seed: int) -> Iterator[dict[str, Any]]:
    """AUROC by what is beside the features, one row a shift and method."""
    graph = load_dataset(dataset)
    stored = _arxiv_edges(graph.num_nodes) if dataset.startswith("arxiv") else stored_edges(dataset, graph.num_nodes)
    for kind in dict.fromkeys(map(kind_of, arrivals_of(dataset))):
        arrival = load_arrival(dataset, kind, Settings(seed=seed))
        for method in methods:
            found: dict[str, dict[str, float]] = defaultdict(dict)
            for way in WAYS:
                fitted = Detector.registry[method](seed=seed).fit(_with_means(arrival.train_graph, stored, way, seed))
                for shift, growth in arrival.grown.items():
                    found[shift][way] = 100 * _auroc(fitted, _with_means(growth.graph, stored, way, seed), growth)
            yield from ({"dataset": dataset, "shift": s, "method": method, "seed": seed} | found[s] for s in found)


def _arxiv_edges(num_nodes: int) -> sp.csr_array:
    pairs = pd.read_csv(data_root() / "ogbn_arxiv" / "raw" / "edge.csv.gz", header=None).to_numpy()
    ends = (pairs[:, 1], pairs[:, 0])
    return sp.csr_array(sp.coo_array((np.ones(len(pairs), dtype=np.float32), ends), shape=(num_nodes, num_nodes)))


def _auroc(detector: Detector, graph: Graph, growth: Growth) -> float:
    new = np.concatenate([growth.new_id, growth.ood])
    return float(roc_auc_score(np.isin(new, growth.ood), detector.decision_function(graph)[new]))


def _with_means(graph: Graph, stored: sp.csr_array, way: str, seed: int) -> Graph:
    """The graph with two blocks of means over neighbours beside its features."""
    known = stored if way == "apart" else 0 * stored
    one_way = _directed(graph, known, seed)
    sides = (graph.adjacency, graph.adjacency) if way == "together" else (one_way, sp.csr_array(one_way.T))
    features: Any = graph.features
    parts = [features, *(sp.diags_array(1 / np.maximum(side.sum(axis=1), 1)) @ side @ features for side in sides)]
    joined: Any = sp.csr_array(sp.hstack(parts)) if sp.issparse(features) else np.concatenate(parts, axis=1)
    return graph.replace(features=joined.astype(np.float32), feature_names=None)


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
    measure.find_datasets()
    main()
