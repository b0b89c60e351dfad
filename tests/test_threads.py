"""Nothing changes how many threads a process computes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GRAPH = "graph = Graph.from_arrays(features=np.eye(4), edges=[(0, 1), (1, 2), (2, 3)], labels=[0, 1, 0, 1])"
USES = {
    "graph": "",
    "propagate": "average(graph.adjacency, graph.features, self_weight=0.0)",
    "homophily": "graph.homophily",
    "row norms": "row_normalize(graph.features)",
    "products": "hop_products(graph.adjacency, sp.csr_array(graph.features), 2, self_weight=0.5)",
}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux lists a process's threads in /proc")
@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_threads_stay_as_the_environment_says(use: str) -> None:
    code = f"""
import os, warnings
import numpy as np, scipy.sparse as sp, torch
from degem import Graph
from degem.ops.features import row_normalize
from degem.propagation.hop_products import hop_products
from degem.ops.neighbours import average
warnings.simplefilter("ignore")
before = len(os.listdir("/proc/self/task"))
{GRAPH}
{use}
print(torch.get_num_threads(), len(os.listdir("/proc/self/task")) - before)
"""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "0"]
