"""A Ray cluster of several nodes on this machine: a head without cores, and two workers of one core each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20, "memory": 4 << 30}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The cluster, and a connection to it, so that tests share its workers; all processes end with the tests."""
    before = dict(os.environ)
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    found = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(2):
            found.add_node(**NODE)
        ray.init(found.address, log_to_driver=False, logging_level="ERROR")
        yield found
    finally:
        ray.shutdown()
        found.shutdown()
        os.environ.clear()
        os.environ |= before
