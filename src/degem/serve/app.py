"""The paths of the service: Open Inference Protocol v2 where it has one, our own beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from degem.errors import DegemError
from degem.extras import needs_extra
from degem.serve.access import Access, is_loopback
from degem.serve.bodies import REFUSED, Error, answered, described, gives, takes
from degem.serve.events import OF_EDGES, Batch, NodeId
from degem.serve.intake import EventError
from degem.serve.limits import Gate, Limits, RefusedError
from degem.serve.metrics import Metrics
from degem.serve.service import Service, UnavailableError
from degem.serve.stateless import Inference, infer
from degem.serve.store import SequenceError, StoreError

with needs_extra("serve", "the service"):
    from anyio import to_thread
    from fastapi import Depends, FastAPI, Query, Request, Response
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import HTMLResponse, JSONResponse
    from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
    from starlette.exceptions import HTTPException

BEARER = HTTPBearer(auto_error=False, description="Scopes: read, write, admin. Without tokens none is needed.")
MOST_ANSWERS = 1000
MOST_DRAWN = 150  # nodes of a neighbourhood
STATUS: dict[type[DegemError], int] = {EventError: 409, SequenceError: 409, StoreError: 503, UnavailableError: 503}
NODE = {
    **{"id": "paper-9001", "status": "provisional", "event": 4711, "degree": 1, "flagged_online": None},
    **{"score": 9.4, "p_value": 0.02, "flagged": True, "class": "databases", "class_probability": 0.71},
    "terms": {"own": 3.1, "affinity": 2.9, "contrast": 0.4, "latent": 1.2, "degrees": 0.3, "classes": 1.5},
}
TAKEN = {"first_event": 4711, "last_event": 4712, "duplicate": False, "nodes": [NODE]}
CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Ids(BaseModel):
    """Ids of nodes."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"ids": ["paper-12"], "alpha": 0.05}})

    ids: Annotated[list[NodeId], Field(min_length=1, max_length=MOST_ANSWERS)]
    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None


def create_app(service: Service, access: Access, limits: Limits | None = None, *, own_hosts: bool = False) -> Gate:
    """The ASGI application.

    Arguments:
        service: The service; it is started with the application and stopped with it.
        access: Who may do what.
        limits: How much one request may ask for.
        own_hosts: Answer only requests that were sent to this machine by its own names, as a browser's that was lured
            are not.
    """
    limits = limits or Limits()
    metrics = Metrics(service)
    app = _application(service)
    may = {scope: [Depends(_required(access, scope, own_hosts))] for scope in ("read", "write", "admin")}
    _add_protocol(app, service, limits, may["read"])
    _add_graph(app, service, limits, may)

    @app.get("/metrics", dependencies=may["read"], response_class=Response, tags=["operation"])
    def prometheus() -> Response:
        """Counters and gauges for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def page() -> HTMLResponse:
        return HTMLResponse(_page(), headers={"Content-Security-Policy": CONTENT_POLICY})

    document = described(app, (Batch, Ids, Inference, Error))
    app.openapi = lambda: document  # type: ignore[method-assign]
    return Gate(app, limits=limits, metrics=metrics)


def _application(service: Service) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await to_thread.run_sync(service.start)
        yield
        await to_thread.run_sync(service.stop)

    app = FastAPI(
        title="degem", version=version("degem"), lifespan=lifespan, docs_url=None, redoc_url=None, responses=REFUSED
    )

    @app.exception_handler(RefusedError)
    async def refused(_: Request, error: RefusedError) -> JSONResponse:
        return error.response()

    @app.exception_handler(DegemError)
    async def wrong(_: Request, error: DegemError) -> JSONResponse:
        return RefusedError(STATUS.get(type(error), 422), str(error)).response()

    @app.exception_handler(HTTPException)
    async def nowhere(_: Request, error: HTTPException) -> JSONResponse:
        return RefusedError(error.status_code, error.detail, dict(error.headers or {})).response()

    @app.exception_handler(RequestValidationError)
    async def misspelt(_: Request, error: RequestValidationError) -> JSONResponse:
        problem = error.errors()[0]
        return RefusedError(422, f"{problem['loc'][-1]}: {problem['msg']}").response()

    return app


def _required(access: Access, scope: str, own_hosts: bool) -> Callable[..., Any]:
    """A dependency that lets pass who has a scope."""

    async def check(
        request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)] = None
    ) -> None:
        if own_hosts and not is_loopback(request.url.hostname or ""):
            raise RefusedError(403, "without tokens the server answers to 127.0.0.1 and localhost alone")
        scopes = access.scopes_of(None if given is None else given.credentials)
        if not scopes:
            raise RefusedError(401, "send a token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        if scope not in scopes:
            raise RefusedError(403, f"the token lacks the scope {scope}")

    return check


def _add_protocol(app: FastAPI, service: Service, limits: Limits, may_read: Any) -> None:
    """The paths of Open Inference Protocol v2."""
    name = service.detector.name
    tags: list[Any] = ["inference protocol"]

    @app.get("/v2", tags=tags)
    def server() -> dict[str, Any]:
        """What this server is."""
        return {"name": "degem", "version": version("degem"), "extensions": ["graph_events"]}

    @app.get("/v2/health/live", tags=tags)
    def live() -> dict[str, bool]:
        """Whether it runs."""
        return {"live": True}

    @app.get("/v2/health/ready", tags=tags)
    def ready() -> dict[str, bool]:
        """Whether it takes events and has scores."""
        if not service.is_ready:
            raise RefusedError(503, service.failure or "the service is starting")
        return {"ready": True}

    @app.get(f"/v2/models/{name}/ready", dependencies=may_read, tags=tags)
    def model_ready() -> dict[str, Any]:
        """Whether the model has scores."""
        return {"name": name} | ready()

    @app.get(f"/v2/models/{name}", dependencies=may_read, tags=tags)
    def metadata() -> dict[str, Any]:
        """What the model takes and gives, and how its scores are kept up to date."""
        detector, now = service.detector, service.snapshot
        tensors = {
            "inputs": [("features", "FP32", [-1, detector.num_features_]), ("edges", "INT64", [-1, 2])],
            "outputs": [("scores", "FP64", [-1]), ("p_values", "FP64", [-1]), ("flags", "BOOL", [-1])],
        }
        described = {
            side: [{"name": each, "datatype": kind, "shape": shape} for each, kind, shape in parts]
            for side, parts in tensors.items()
        }
        tolerance = service.settings.tolerance if now.scoring.refresh == "rows" else 0.0
        parameters = {
            "refresh": now.scoring.refresh,
            "tolerance": tolerance,
            "features": detector.feature_names_,
            "classes": service.class_names,
            "calibration_nodes": len(now.scored.calibration),
        }
        return {
            "name": name,
            "versions": [service.version],
            "platform": "degem",
            **described,
            "parameters": parameters,
        }

    @app.post(f"/v2/models/{name}/infer", dependencies=may_read, tags=tags, openapi_extra=takes(Inference))
    async def inference(request: Request) -> JSONResponse:
        """Score a subgraph that comes with the request."""
        return await answered(request, Inference, lambda asked, _: infer(service, asked, limits))


def _add_graph(app: FastAPI, service: Service, limits: Limits, may: dict[str, Any]) -> None:
    """The paths about the graph that the server holds."""
    tags: list[Any] = ["graph"]

    @app.post("/v2/events", dependencies=may["write"], tags=tags, responses=gives(TAKEN), openapi_extra=takes(Batch))
    async def events(request: Request) -> JSONResponse:
        """Take a batch of events; once this answers, they are on the disk. New nodes get a provisional score."""

        def submit(batch: Batch, body: bytes) -> dict[str, Any]:
            edges = sum(isinstance(event, OF_EDGES) for event in batch.events)
            if len(batch.events) - edges > limits.nodes or edges > limits.edges:
                raise RefusedError(
                    413, f"a batch has at most {limits.nodes:,} events of nodes and {limits.edges:,} of edges"
                )
            return service.submit(batch, body)

        return await answered(request, Batch, submit)

    @app.get("/v2/clients/{client:path}", dependencies=may["write"], tags=tags)
    def client_sequence(client: str) -> dict[str, Any]:
        """The sequence number that a client goes on with."""
        return {"client": client, "next_sequence": service.store.next_sequence(client)}

    @app.get("/v2/nodes/{node:path}", dependencies=may["read"], tags=tags, responses=gives(NODE))
    def node_by_id(node: str, alpha: Annotated[float | None, Query(gt=0, lt=1)] = None) -> dict[str, Any]:
        """What is known of a node: its score and p-value, whether they are exact, and as of which event."""
        found = service.answers([node], alpha)[0]
        if found is None:
            raise RefusedError(404, f"there is no such node as of event {service.snapshot.event}")
        return found

    @app.post(
        "/v2/score",
        dependencies=may["read"],
        tags=tags,
        responses=gives({"event": 4712, "nodes": [NODE, None]}),
        openapi_extra=takes(Ids),
    )
    async def score(request: Request) -> JSONResponse:
        """What is known of some nodes; null for one that is not there."""

        def answers(asked: Ids, _: bytes) -> dict[str, Any]:
            nodes = service.answers(asked.ids, asked.alpha)
            return {"event": service.snapshot.event, "nodes": nodes}

        return await answered(request, Ids, answers)

    @app.get("/v2/neighbourhood/{node:path}", dependencies=may["read"], tags=tags)
    def neighbourhood(node: str, depth: Annotated[int, Query(ge=1)] = 1) -> dict[str, Any]:
        """The nodes around a node, with their scores, and the edges between them."""
        if depth > limits.depth:
            raise RefusedError(422, f"depth is at most {limits.depth}")
        now = service.snapshot
        row = now.row(node)
        if row is None:
            raise RefusedError(404, f"there is no such node as of event {now.event}")
        rows, edges, cut = now.around(row, depth, MOST_DRAWN)
        nodes = [found for found in service.answers([now.ids[each] for each in rows]) if found is not None]
        return {"event": now.event, "nodes": nodes, "edges": edges if len(nodes) == len(rows) else [], "cut": cut}

    @app.get("/v2/arrivals", dependencies=may["read"], tags=tags)
    def arrivals(limit: Annotated[int, Query(ge=1, le=5000)] = 100) -> dict[str, Any]:
        """The last new nodes, the last first, with their first exact scores and what was decided of them."""
        return {"arrivals": service.store.decisions(limit)}

    @app.get("/v2/status", dependencies=may["read"], tags=["operation"])
    def status() -> dict[str, Any]:
        """Where the server stands."""
        now = service.snapshot
        return {
            "model": service.detector.name,
            "event": now.event,
            "accepted": service.accepted,
            "queue": service.queue,
            "lag": service.lag,
            "refreshed": now.refreshed,
            "refresh": now.scoring.refresh,
            "rows": now.scoring.num_rows,
            "nodes": int(now.alive.sum()),
            "edges": int(now.adjacency.nnz // 2),
            "alpha": service.settings.alpha,
            "fdr": service.settings.fdr,
            "ready": service.is_ready,
        }

    @app.post("/v2/admin/refresh", dependencies=may["admin"], status_code=202, tags=["operation"])
    def refresh() -> dict[str, bool]:
        """Have the whole graph scored anew, and written to the disk."""
        service.ask_for_full_refresh()
        return {"asked": True}


def _page() -> str:
    """The page, in the style of the report."""
    folder = files("degem.serve").joinpath("page")
    html, own, script = (folder.joinpath(f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    style = files("degem.report").joinpath("assets", "page.css").read_text(encoding="utf-8")
    return html.replace("/* style */", style + own).replace("/* script */", script)
