"""A client of the service: events in batches, each sent until it is acknowledged."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from degem.errors import DegemError, one_line
from degem.extras import needs_extra

with needs_extra("serve", "the client"):
    import httpx

PASSING = (408, 429, 500, 502, 503, 504)  # answers after which it is worth asking again
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0


class ServiceError(DegemError):
    """The service refused a request, or could not be reached.

    Arguments:
        message: What it said.
        status: The HTTP status; None where it could not be reached.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """Gathers events, sends them in batches, and asks for scores.

    A batch has a sequence number, under which the service takes it once. So it is sent again, unchanged, whenever no
    answer came, also where the server has been killed meanwhile. A client that goes on under its former name goes on
    with its numbers. One thread at a time may use it.

    Arguments:
        url: Where the service is.
        token: A token with the scopes that are needed: read for scores, write for events.
        name: The client's name; default: a new one.
        batch_size: How many events are gathered before they are sent.
        patience: For how many seconds a request is repeated.
        transport: How to reach the service, if not by the network.

    Example:
        >>> with Client("http://127.0.0.1:8000", patience=0) as client:
        ...     client.add_node("paper-9001", [0.0, 1.0, 0.5])
        ...     client.add_edge("paper-9001", "paper-12")
        ...     client.flush()
        Traceback (most recent call last):
            ...
        degem.client.ServiceError: http://127.0.0.1:8000 cannot be reached: ...
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        name: str | None = None,
        batch_size: int = 500,
        patience: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url, self.name, self.batch_size, self.patience = url, name or uuid.uuid4().hex, batch_size, patience
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=30.0, transport=transport)
        self._sequence: int | None = None if name else 0
        self._events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self._http.close()

    # -- events ------------------------------------------------------------------------------------------------

    def add_node(self, node: str, features: Sequence[float]) -> None:
        """A new node."""
        self._add(op="add_node", id=node, features=[float(value) for value in features])

    def update_node(self, node: str, features: Sequence[float]) -> None:
        """Other features for a node."""
        self._add(op="update_node", id=node, features=[float(value) for value in features])

    def remove_node(self, node: str) -> None:
        """A node goes, and its edges with it."""
        self._add(op="remove_node", id=node)

    def add_edge(self, source: str, target: str, weight: float = 1.0) -> None:
        """An undirected edge, or another weight for one that is there."""
        self._add(op="add_edge", source=source, target=target, weight=weight)

    def remove_edge(self, source: str, target: str) -> None:
        """An edge goes."""
        self._add(op="remove_edge", source=source, target=target)

    def flush(self) -> dict[str, Any] | None:
        """Send what is gathered, and return what the service says of it: numbers of events, scores of new nodes.

        Events that the service refuses are dropped, all of their batch, and the error says which was wrong.
        """
        if not self._events:
            return None
        if self._sequence is None:
            self._sequence = self._ask("GET", f"/v2/clients/{quote(self.name, safe='')}")["next_sequence"]
        batch = {"client": self.name, "sequence": self._sequence, "events": self._events}
        try:
            answer = self._ask("POST", "/v2/events", json=batch)
        except ServiceError as error:
            if error.status is not None and error.status not in PASSING:
                self._events = []
            raise
        self._events = []
        self._sequence += 1
        return answer

    def _add(self, **event: Any) -> None:
        if len(self._events) >= self.batch_size:
            self.flush()
        self._events.append(event)

    # -- answers -----------------------------------------------------------------------------------------------

    def node(self, node: str) -> dict[str, Any] | None:
        """What is known of a node; None if it is not there."""
        return self.score([node])[0]

    def score(self, nodes: Sequence[str], alpha: float | None = None) -> list[dict[str, Any] | None]:
        """What is known of some nodes, in their order; None for one that is not there."""
        asked = {"ids": list(nodes)} | ({} if alpha is None else {"alpha": alpha})
        return self._ask("POST", "/v2/score", json=asked)["nodes"]  # type: ignore[no-any-return]

    def status(self) -> dict[str, Any]:
        """Where the server stands."""
        return self._ask("GET", "/v2/status")

    def wait_for(self, event: int, seconds: float = 60.0) -> None:
        """Wait until scores have an event."""
        until = time.monotonic() + seconds
        while self.status()["event"] < event:
            if time.monotonic() > until:
                raise ServiceError(f"{self.url}: scores lacked event {event} still after {seconds:g} seconds")
            time.sleep(0.05)

    def _ask(self, method: str, path: str, json: Any = None) -> dict[str, Any]:
        until, wait = time.monotonic() + self.patience, FIRST_WAIT
        while True:
            try:
                response = self._http.request(method, path, json=json)
            except httpx.TransportError as error:
                failure = ServiceError(f"{self.url} cannot be reached: {one_line(error)}")
            else:
                if response.is_success:
                    return response.json()  # type: ignore[no-any-return]
                failure = ServiceError(f"{self.url}: {_said(response)}", response.status_code)
            if failure.status not in (None, *PASSING) or time.monotonic() + wait > until:
                raise failure
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)


def _said(response: httpx.Response) -> str:
    try:
        return f"{response.json()['error']} ({response.status_code})"
    except (ValueError, KeyError, TypeError):
        return f"answered with status {response.status_code}"
