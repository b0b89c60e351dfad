"""A fitted detector, and services on it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from degem import DeGEM, Graph
from degem.data.demo import digits_graph
from degem.serve.access import Access
from degem.serve.app import create_app
from degem.serve.limits import Limits
from degem.serve.service import Service, Settings
from degem.serve.store import EventStore

NUM_NODES = 300


@pytest.fixture(scope="session")
def served_graph() -> Graph:
    """Some of the digits, with ids that are names."""
    graph = digits_graph().subgraph(np.arange(NUM_NODES))
    return graph.replace(node_ids=np.array([f"digit {row}" for row in range(NUM_NODES)], dtype=object))


@pytest.fixture(scope="session")
def served(served_graph: Graph) -> DeGEM:
    """DeGEM, hardly trained."""
    return DeGEM(num_epochs=2, latent_dim=16, num_hops=5).fit(served_graph)


@pytest.fixture
def serving(served: DeGEM, served_graph: Graph, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Makes services on one folder, started; stops them."""
    made: list[Service] = []

    def make(
        detector: Any = served, graph: Graph = served_graph, *, url: str | None = None, **settings: Any
    ) -> Service:
        store = EventStore(url or f"sqlite:///{tmp_path / 'events.db'}")
        service = Service(detector, graph, store, tmp_path, Settings(**{"tolerance": 0.0, **settings}))
        service.start()
        made.append(service)
        return service

    yield make
    for service in made:
        service.stop()


@pytest.fixture
def connect(served: DeGEM, served_graph: Graph, tmp_path: Path) -> Iterator[Callable[..., TestClient]]:
    """Makes clients of servers."""
    with contextlib.ExitStack() as stack:

        def make(*lines: str, graph: Graph = served_graph, limits: Limits | None = None, **options: Any) -> TestClient:
            store = EventStore(f"sqlite:///{tmp_path / 'events.db'}")
            service = Service(served, graph, store, tmp_path, Settings(tolerance=0.0))
            app = create_app(service, Access(lines), limits, **options)
            return stack.enter_context(TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False))

        yield make
