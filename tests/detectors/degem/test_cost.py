"""The estimate follows the sizes, and disk takes over where the budget ends."""

import numpy as np
import pytest

from degem import DeGEM, Graph
from degem.detectors.cost import Cost
from degem.errors import DegemError


def test_disk_takes_over_beyond_the_budget(small_graph: Graph) -> None:
    width = small_graph.num_features
    in_memory, on_disk = DeGEM().estimate(small_graph), DeGEM(memory_budget=0.01).estimate(small_graph)
    assert in_memory is not None
    assert on_disk is not None
    assert in_memory.disk_mib == 0
    assert on_disk.disk_mib == pytest.approx(4 * 6 * 120 * width / 2**20)
    assert on_disk.memory_mib < in_memory.memory_mib


def test_more_nodes_cost_more() -> None:
    def cost(nodes: int) -> Cost:
        path = np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1)
        found = DeGEM().estimate(Graph.from_arrays(features=np.ones((nodes, 16)), edges=path))
        assert found is not None
        return found

    few, many = cost(50_000), cost(200_000)
    assert many.seconds > few.seconds
    assert many.memory_mib > few.memory_mib + 4 * 6 * 16 * 150_000 / 2**20


def test_too_much_of_either_is_refused_with_the_numbers() -> None:
    with pytest.raises(DegemError, match=r"about 1,000,000,000 MiB of memory"):
        Cost(memory_mib=1e9, disk_mib=0.0, seconds=1.0).refuse_what_cannot_fit()
    with pytest.raises(DegemError, match=r"about 1,000,000,000 MiB of temporary files"):
        Cost(memory_mib=1.0, disk_mib=1e9, seconds=1.0).refuse_what_cannot_fit()
