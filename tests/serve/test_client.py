"""The client: batches, numbers, and what it does when no answer comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

from degem import Graph
from degem.client import Client, ServiceError

Connect = Callable[..., TestClient]


class Wire(httpx.BaseTransport):
    """Hands requests to a server, and loses some.

    Arguments:
        server: The server.
        losses: What happens to each request in turn: ``asked`` never arrives, ``answered`` loses its answer, a number
            is a status from a proxy; then all goes well.
    """

    def __init__(self, server: TestClient, *losses: str | int) -> None:
        self.server, self.losses, self.sent = server, list(losses), 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        loss = self.losses.pop(0) if self.losses else None
        if loss == "asked":
            raise httpx.ConnectError("refused")
        if isinstance(loss, int):
            return httpx.Response(loss, text="<h1>no JSON</h1>")
        path = request.url.raw_path.decode()
        found = self.server.request(request.method, path, content=request.content, headers=dict(request.headers))
        if loss == "answered":
            raise httpx.ReadTimeout("lost")
        return httpx.Response(found.status_code, content=found.content)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("degem.client.FIRST_WAIT", 0.001)


def client_of(server: TestClient, *losses: str | int, **options: Any) -> tuple[Client, Wire]:
    wire = Wire(server, *losses)
    return Client("http://127.0.0.1", transport=wire, **options), wire


def test_a_batch_is_sent_until_it_is_acknowledged_and_counts_once(connect: Connect, served_graph: Graph) -> None:
    server = connect()
    client, wire = client_of(server, "asked", 503, "answered", "answered")
    client.add_node("x", np.asarray(served_graph.features)[3])
    client.add_edge("x", "digit 3")
    answer = client.flush()
    assert answer is not None
    assert (answer["duplicate"], answer["last_event"], wire.sent) == (True, 2, 5)
    client.wait_for(2)
    found = client.score(["x", "nobody"])
    assert found[0] is not None
    assert (found[0]["status"], found[0]["degree"], found[1]) == ("exact", 1, None)
    assert client.status()["accepted"] == 2


def test_events_are_gathered_and_the_rest_goes_at_the_end(connect: Connect, served_graph: Graph) -> None:
    server = connect()
    client, wire = client_of(server, name="n/1", batch_size=2)
    with client:
        for row in range(3):
            client.update_node(f"digit {row}", np.asarray(served_graph.features)[row + 1])
        assert wire.sent == 2  # which number comes next, and the first batch
    assert server.get("/v2/status").json()["accepted"] == 3
    with client_of(server, name="n/1")[0] as later:
        later.remove_node("digit 5")
        later.remove_edge("digit 6", "digit 7")
    assert server.get("/v2/clients/n%2F1").json()["next_sequence"] == 3


def test_what_is_refused_is_said_at_once_and_dropped(connect: Connect) -> None:
    client, wire = client_of(connect())
    client.remove_node("nobody")
    with pytest.raises(ServiceError, match=r"no node 'nobody' \(409\)") as refused:
        client.flush()
    assert (refused.value.status, wire.sent) == (409, 1)
    assert client.flush() is None


def test_a_server_that_stays_away_is_an_error_and_nothing_is_dropped(connect: Connect) -> None:
    server = connect()
    client, _ = client_of(server, *["asked"] * 50, patience=0.02)
    client.remove_node("digit 3")
    with pytest.raises(ServiceError, match="cannot be reached: refused"):
        client.flush()
    back, _ = client_of(server)
    back._events, back.name = client._events, client.name
    answer = back.flush()
    assert answer is not None
    assert answer["last_event"] == 1


def test_waiting_has_an_end(connect: Connect) -> None:
    client, _ = client_of(connect())
    begun = time.monotonic()
    with pytest.raises(ServiceError, match="lacked event 7"):
        client.wait_for(7, seconds=0.1)
    assert time.monotonic() - begun < 10
