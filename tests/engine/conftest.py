"""A Ray cluster of several nodes on this machine: a head without cores, and two workers of one core each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import ray
from ray.cluster_utils import Cluster

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20, "memory": 4 << 30}


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    """The cluster, and a connection to it, for the tests of this folder; its processes end with the last of these."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        found = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False})
        for _ in range(2):
            found.add_node(**NODE)
    try:
        ray.init(found.address, log_to_driver=False, logging_level="ERROR")
        yield found
    finally:
        ray.shutdown()
        found.shutdown()
