"""A service on its state folder, behind uvicorn."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from degem.detectors.base import Detector
from degem.errors import DegemError
from degem.extras import needs_extra
from degem.graph import Graph
from degem.serve.access import Access
from degem.serve.app import create_app
from degem.serve.limits import JsonLines, Limits
from degem.serve.service import Service, Settings
from degem.serve.store import EventStore

with needs_extra("serve", "the service"):
    import uvicorn

SWITCH = 0.0005  # seconds: a request waits for Python's lock ten times, and the writer had it for 5 ms each time
LOGGER = logging.getLogger("degem.serve")


@contextmanager
def opened(
    detector: Detector, graph: Graph, state: Path, database: str | None = None, settings: Settings | None = None
) -> Iterator[Service]:
    """A service on a folder that no other server is at work on.

    Arguments:
        detector: A fitted and calibrated detector.
        graph: The graph that the first event meets.
        state: The folder.
        database: The URL of a database for the events; default: SQLite in the folder.
        settings: How the service decides.
    """
    try:
        state.mkdir(parents=True, exist_ok=True)
        with FileLock(state / ".lock", timeout=0):
            store = EventStore(database or f"sqlite:///{state / 'events.db'}")
            yield Service(detector, graph, store, state, settings)
    except Timeout:
        raise DegemError(f"{state} is in use by another server: stop it, or choose another folder") from None
    except OSError as error:
        raise DegemError(f"{state} cannot be used: {error.strerror}") from None


def run(
    service: Service,
    access: Access,
    limits: Limits | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    certificate: Path | None = None,
    key: Path | None = None,
) -> None:
    """Listen until interrupted; the log goes to standard error, one JSON object a line.

    Arguments:
        service: The service.
        access: Who may do what.
        limits: How much one request may ask for.
        host: Where to listen.
        port: The port; 0 for any that is free.
        certificate: With TLS, the certificate.
        key: With TLS, its key.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for logger in (LOGGER, logging.getLogger("uvicorn")):
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    sys.setswitchinterval(SWITCH)
    gc.freeze()  # what is loaded stays: to look through all of it for garbage holds up every request for a while
    uvicorn.run(
        create_app(service, access, limits, own_hosts=access.is_open),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=5,
    )
