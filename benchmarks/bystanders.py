"""Do strange newcomers get their bystanders flagged? Twenty outliers join a graph; who else is flagged then?

    python benchmarks/bystanders.py              # three graphs, three seeds
    python benchmarks/bystanders.py --graphs digits --seeds 1

A graph of 800 nodes is fitted on without a fifth of them. These join, and with them 20 outliers: features of another
kind, ten times as long, each with edges to 1, 5 or 20 nodes, drawn at random, from one neighbourhood, or from the new
nodes alone. Counted are nodes flagged at alpha 0.05 that no outlier is adjacent to: new ones, for which the rate is
promised, and others.
Writes ``results/bystanders.csv`` and ``docs/bystanders.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure
import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from degem import DeGEM, Graph
from degem.data.datasets import load_dataset
from degem.data.demo import digits_graph

PAGE = Path(__file__).parents[1] / "docs" / "bystanders.md"
NUM_NODES, NUM_OUTLIERS, ALPHA = 800, 20, 0.05
COLUMNS = ["new before", "new", "of the fit before", "of the fit", "adjacent", "outliers"]
TEXT = """# Bystanders

Written by `python benchmarks/bystanders.py` from `benchmarks/results/bystanders.csv`. 800 nodes of a graph, a fifth of
which arrive after the fit, and with them 20 outliers of features unlike any, each joined to so many nodes, drawn at
random, from one neighbourhood, or from the new nodes. Share flagged at α = 0.05, in percent, of nodes that no outlier
is adjacent to: of those that are new, and of those of the fit, first without the outliers, then with them; then of the
nodes adjacent to one, and of the outliers themselves. Mean over seeds {seeds}; in brackets the largest rise of any seed
(with 20 edges each to new nodes, hardly a new node is left that no outlier is adjacent to).

That new bystanders are flagged no more often than α is no accident: calibration nodes are scored in the same graph, and
what outliers do to the scores of all, they do to both sides of the comparison. The promise is for outliers that join
next to calibration nodes as likely as next to new ones; the rows "new nodes" show what happens where they do not.
Nothing bounds the share among nodes *adjacent* to outliers: their neighbourhood has become strange.

The share of new bystanders flagged moved, in points,
{summary}.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", default="digits,cora,chameleon", help="separated by commas")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    options = parser.parse_args()
    for name in options.graphs.split(","):
        rows = [row for seed in range(options.seeds) for row in measured(name, seed)]
        measure.write(rows, "bystanders", key=["graph"])
        print(pd.DataFrame(rows).to_string(index=False), flush=True)
    write_page(pd.read_csv(measure.RESULTS / "bystanders.csv"))


def measured(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """One row a number of edges and a way to place them."""
    rng = np.random.default_rng(seed)
    graph = some_of(name, rng)
    new = rng.random(NUM_NODES) < 0.2
    detector = DeGEM(seed=seed).fit(graph.subgraph(~new))
    alone = detector.predict(graph, alpha=ALPHA).astype(bool)
    for place in ("at random", "one neighbourhood", "new nodes"):
        for degree in (1, 5, 20):
            grown, adjacent = with_outliers(graph, degree, place, new, rng)
            flags = detector.predict(grown, alpha=ALPHA).astype(bool)
            flagged, apart = flags[:NUM_NODES], ~adjacent
            shares = {
                "new before": alone[new & apart],
                "new": flagged[new & apart],
                "of the fit before": alone[~new & apart],
                "of the fit": flagged[~new & apart],
                "adjacent": flagged[adjacent],
                "outliers": flags[NUM_NODES:],
            }
            sizes = {"graph": name, "seed": seed, "edges": degree, "place": place, "apart": int(apart.sum())}
            yield sizes | {what: 100 * share.mean() if len(share) else np.nan for what, share in shares.items()}


def some_of(name: str, rng: np.random.Generator) -> Graph:
    """800 nodes of a graph that lie together, so that most of their edges stay."""
    graph = digits_graph() if name == "digits" else load_dataset(name)
    chosen: list[int] = []
    seen = np.zeros(graph.num_nodes, dtype=bool)
    for start in rng.permutation(graph.num_nodes):
        queue = [] if seen[start] else [int(start)]
        seen[start] = True
        while queue and len(chosen) < NUM_NODES:
            node = queue.pop(0)
            chosen.append(node)
            around = graph.adjacency[[node]].indices
            fresh = around[~seen[around]]
            seen[fresh] = True
            queue += fresh.tolist()
    return graph.subgraph(np.sort(chosen[:NUM_NODES])).replace(masks={})


def with_outliers(
    graph: Graph, degree: int, place: str, new: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[Graph, NDArray[np.bool_]]:
    """The graph with outliers joined behind its nodes, and which nodes one of them is adjacent to."""
    pool = np.flatnonzero(new) if place == "new nodes" else np.arange(NUM_NODES)
    if place == "one neighbourhood":  # the fewest hops around a node that have 50 nodes
        pool = np.array([int(rng.integers(NUM_NODES))])
        while len(pool) < 50:
            wider = np.union1d(pool, graph.adjacency[pool].indices)
            pool = wider if len(wider) > len(pool) else np.union1d(pool, rng.integers(NUM_NODES, size=50))
    ends = np.concatenate([rng.choice(pool, min(degree, len(pool)), replace=False) for _ in range(NUM_OUTLIERS)])
    count = len(ends) // NUM_OUTLIERS
    joined = sp.csr_array(
        (np.ones(len(ends), dtype=np.float32), (np.repeat(np.arange(NUM_OUTLIERS), count), ends)),
        shape=(NUM_OUTLIERS, NUM_NODES),
    )
    features = np.asarray(graph.features.todense() if sp.issparse(graph.features) else graph.features)
    strange = features[rng.integers(NUM_NODES, size=(NUM_OUTLIERS, features.shape[1])), np.arange(features.shape[1])]
    strange = 10 * np.maximum(strange, rng.random(strange.shape) * features.max())
    adjacent = np.zeros(NUM_NODES, dtype=bool)
    adjacent[ends] = True
    blocks: Any = [[graph.adjacency, joined.T], [joined, None]]
    return Graph.from_arrays(
        features=np.concatenate([features, strange.astype(np.float32)]),
        adjacency=sp.csr_array(sp.block_array(blocks)),
        labels=np.append(graph.labels, np.full(NUM_OUTLIERS, -1)),
        node_ids=np.append(graph.node_ids.astype(str), [f"outlier {place}" for place in range(NUM_OUTLIERS)]),
    ), adjacent


def write_page(rows: pd.DataFrame) -> None:
    groups = rows.groupby(["graph", "place", "edges"], sort=False)
    table = groups[COLUMNS].mean().map("{:.1f}".format).reset_index()
    for column in ("new", "of the fit"):
        rise = (rows[column] - rows[f"{column} before"]).groupby(
            [rows["graph"], rows["place"], rows["edges"]], sort=False
        )
        table[column] += [f" ({most:+.1f})" for most in rise.max()]
    seeds = ", ".join(map(str, sorted(set(rows["seed"]))))
    rise = (rows["new"] - rows["new before"]).groupby(rows["place"], sort=False)
    parts = [f"by {each.mean():+.1f} on average and {each.max():+.1f} at most ({place})" for place, each in rise]
    text = TEXT.format(seeds=seeds, summary=",\n".join(parts))
    PAGE.write_text(text + measure.markdown_table(table), encoding="utf-8")


if __name__ == "__main__":
    measure.find_datasets()
    main()
