"""How long a report takes and how much memory: ``python benchmarks/report_scale.py 10000 1000000``.

Each size runs in a process of its own, which makes a random graph (ten edges a node, 64 features), fits DeGEM on 2,000
nodes of it (hop features in at most 1 GiB of memory), and then writes the report. Time covers scoring, explanations,
map and page; memory is the peak of the whole process, the graph included.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

from degem import DeGEM, Graph
from degem.report import write_report

NUM_FEATURES, NUM_CLASSES, ROUNDS = 64, 7, 5


def random_graph(num_nodes: int, seed: int = 0) -> Graph:
    rng = np.random.default_rng(seed)
    labels = rng.integers(NUM_CLASSES, size=num_nodes)
    centres = rng.standard_normal((NUM_CLASSES, NUM_FEATURES), dtype=np.float32)
    features = np.abs(centres[labels] + 0.5 * rng.standard_normal((num_nodes, NUM_FEATURES), dtype=np.float32))
    rows = np.tile(np.arange(num_nodes, dtype=np.int32), ROUNDS)
    columns = np.concatenate([rng.permutation(num_nodes).astype(np.int32) for _ in range(ROUNDS)])
    half = sp.coo_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(num_nodes, num_nodes)).tocsr()
    adjacency = sp.csr_array(half + half.T)
    adjacency.setdiag(0)
    adjacency.eliminate_zeros()
    adjacency.data[:] = 1
    years = rng.integers(2015, 2025, size=num_nodes)
    return Graph(
        features=features, adjacency=adjacency, labels=labels, node_ids=np.arange(num_nodes), columns={"year": years}
    )


def measure(num_nodes: int) -> None:
    graph = random_graph(num_nodes)
    detector = DeGEM(num_epochs=5, memory_budget=1024).fit(graph.subgraph(np.arange(min(2_000, num_nodes))))
    is_ood = np.random.default_rng(1).random(num_nodes) < 0.05
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        start, cpu_start = time.perf_counter(), time.process_time()
        write_report(detector, graph, page, is_ood=is_ood, time="year")
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
        size = page.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    took = f"{seconds:.1f} s ({cpu_seconds:.1f} s of CPU on 2 threads)"
    print(f"{num_nodes:,} nodes: {took}, page {size / 1e6:.2f} MB, peak memory {peak:.2f} GiB", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        torch.set_num_threads(2)
        measure(int(sys.argv[2]))
    else:
        for size in sys.argv[1:]:
            subprocess.run([sys.executable, __file__, "--one", size], check=True)
