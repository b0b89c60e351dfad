"""What stands before every path: a request's id, its limits, its line in the log, its place in the metrics."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from degem.errors import one_line
from degem.extras import needs_extra
from degem.serve.metrics import Metrics

with needs_extra("serve", "the service"):
    from starlette.requests import ClientDisconnect
    from starlette.responses import JSONResponse
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOGGER = logging.getLogger("degem.serve")
METHODS = ("GET", "HEAD", "OPTIONS", "POST")
CLIENTS = 10_000  # whose rates are remembered
REQUEST_ID = re.compile(r"[\w.-]{1,64}")


@dataclass(frozen=True)
class Limits:
    """How much one request may ask for.

    Arguments:
        body: Bytes of its body.
        nodes: Nodes in it.
        edges: Edges in it.
        depth: Steps from a node that its neighbourhood may be asked for.
        seconds: Time until it has arrived and is answered.
        rate: Requests a second, over some seconds, of one token, or of one address without tokens.
    """

    body: int = 16 << 20
    nodes: int = 10_000
    edges: int = 100_000
    depth: int = 3
    seconds: float = 30.0
    rate: float = 500.0


class RefusedError(Exception):
    """A request that is answered by a status and a line.

    Arguments:
        status: The HTTP status.
        detail: What was wrong, and the way out.
        headers: Further headers.
    """

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, one_line(detail), headers

    def response(self) -> JSONResponse:
        """The answer."""
        return JSONResponse({"error": self.detail}, self.status, self.headers)


class Gate:
    """ASGI middleware: limits, the log and the metrics.

    Arguments:
        app: What is behind it.
        limits: The limits.
        metrics: The metrics.
        clock: Tells the time in seconds.
    """

    def __init__(
        self, app: ASGIApp, *, limits: Limits, metrics: Metrics, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.app, self.limits, self.metrics, self.clock = app, limits, metrics, clock
        self._allowance: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        asked, begun, status = headers.get("x-request-id", ""), time.perf_counter(), 500
        request_id = asked if REQUEST_ID.fullmatch(asked) else uuid.uuid4().hex

        async def numbered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            self._take_turn((scope.get("client") or ("",))[0])
            async with asyncio.timeout(self.limits.seconds):
                body = await self._body(headers, receive)
                await self.app(scope, _replay(body), numbered)
        except RefusedError as refusal:
            await refusal.response()(scope, receive, numbered)
        except TimeoutError:
            late = RefusedError(408, f"no answer within {self.limits.seconds:g} seconds: ask for less at a time")
            if status == 500:
                await late.response()(scope, receive, numbered)
        except ClientDisconnect:
            status = 499
        finally:
            route = scope.get("route")
            path = getattr(route, "path", "unknown")
            seconds = time.perf_counter() - begun
            method = scope["method"] if scope["method"] in METHODS else "other"  # who asks must not make series
            self.metrics.requests.labels(method, path, status).inc()
            self.metrics.seconds.labels(path).observe(seconds)
            told = {"request": request_id, "method": scope["method"], "path": path, "status": status}
            LOGGER.info("request", extra={"told": told | {"ms": round(1000 * seconds, 2)}})

    async def _body(self, headers: dict[str, str], receive: Receive) -> bytes:
        """The whole body, which the limits are for."""
        most, parts, size = self.limits.body, [], 0
        told = headers.get("content-length", "")
        more = True
        while more:
            if size > most or (told.isdigit() and int(told) > most):
                raise RefusedError(413, f"the body has more than {most:,} bytes: send less at a time")
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > most:
            raise RefusedError(413, f"the body has more than {most:,} bytes: send less at a time")
        return b"".join(parts)

    def _take_turn(self, client: str) -> None:
        """One of the client's turns: as many a second as the rate says, and as many at once as in two seconds."""
        rate, now = self.limits.rate, self.clock()
        most = max(2 * rate, 1.0)
        left, at = self._allowance.pop(client, (most, now))
        left = min(left + rate * (now - at), most)
        self._allowance[client] = (left - 1 if left >= 1 else left, now)
        if len(self._allowance) > CLIENTS:
            self._allowance.popitem(last=False)
        if left < 1:
            raise RefusedError(429, f"more than {rate:g} requests a second: wait a little", {"Retry-After": "1"})


def _replay(body: bytes) -> Receive:
    """A body that has been read already."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else await asyncio.Future()

    return receive


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        said = {"at": f"{at}.{int(record.msecs):03d}Z", "level": record.levelname, "message": record.getMessage()}
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said | getattr(record, "told", {}))
