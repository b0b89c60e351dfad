"""Nothing changes how many threads a process computes on, and how many there are does not change a fit."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from degem import DeGEM
from degem.data.demo import heterophilic_graph
from degem.threads import MAX_KERNEL_THREADS, kernel_threads, one_thread

USES = """
import json, os, warnings
import numpy as np, scipy.sparse as sp, torch
LIMIT
from degem import DeGEM, Graph
from degem.data.demo import heterophilic_graph
from degem.ops.features import row_normalize
from degem.ops.neighbours import average
from degem.propagation.hop_products import hop_products

def computing():
    names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
    return sum(name != "jemalloc_bg_thd" for name in names)  # which frees memory, and nothing else

warnings.simplefilter("ignore")
before, found = computing(), {}
for use in [
    "graph = Graph.from_arrays(features=np.eye(4), edges=[(0, 1), (1, 2), (2, 3)], labels=[0, 1, 0, 1])",
    "average(graph.adjacency, graph.features, self_weight=0.0)",
    "graph.homophily()",
    "row_normalize(graph.features)",
    "hop_products(graph.adjacency, sp.csr_array(graph.features), 2, self_weight=0.5)",
    "planted = heterophilic_graph(num_nodes=200)",
    "detector = DeGEM(num_epochs=1).fit(planted)",
    "detector.decision_function(planted)",
]:
    exec(use)
    found[use] = (torch.get_num_threads(), computing() - before)
print(json.dumps(found))
"""


@pytest.fixture(autouse=True)
def threads_before() -> Iterator[int]:
    before = torch.get_num_threads()
    yield before
    torch.set_num_threads(before)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux lists a process's threads in /proc")
@pytest.mark.parametrize("limit", ["", "torch.set_num_threads(1)"], ids=["environment", "set_num_threads"])
def test_no_use_starts_threads_or_changes_their_number(limit: str) -> None:
    limits = {"OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
    environment = {name: value for name, value in os.environ.items() if name not in limits}
    done = subprocess.run(
        [sys.executable, "-c", USES.replace("LIMIT", limit)],
        env=environment if limit else environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found == {use: [1, 0] for use in found}


@pytest.mark.parametrize("count", [1, 2])
def test_kernels_follow_torch_and_leave_both_numbers_alone(count: int) -> None:
    torch.set_num_threads(count)
    before = numba.get_num_threads()
    with kernel_threads():
        assert numba.get_num_threads() == min(count, MAX_KERNEL_THREADS)
    assert (torch.get_num_threads(), numba.get_num_threads()) == (count, before)


def test_one_thread_is_for_a_while_and_not_for_kernels() -> None:
    torch.set_num_threads(2)
    with one_thread():
        with kernel_threads():
            assert numba.get_num_threads() == min(2, MAX_KERNEL_THREADS)
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_an_error_leaves_the_number_of_threads_alone() -> None:
    torch.set_num_threads(2)
    with contextlib.suppress(ValueError), one_thread(), kernel_threads():
        raise ValueError
    assert torch.get_num_threads() == 2


def test_fits_agree_whatever_the_number_of_threads() -> None:
    graph = heterophilic_graph()
    scores = []
    for count in (1, 2):
        torch.set_num_threads(count)
        with threadpool_limits(count, user_api="blas"):
            scores.append(DeGEM(num_epochs=20).fit(graph).decision_function(graph))
        assert torch.get_num_threads() == count
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-5, atol=1e-5)
