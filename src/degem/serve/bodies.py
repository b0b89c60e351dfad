"""Bodies of requests and answers: read, and described for OpenAPI."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from degem.extras import needs_extra
from degem.serve.limits import RefusedError

with needs_extra("serve", "the service"):
    from anyio import to_thread
    from fastapi import FastAPI, Request
    from fastapi.openapi.utils import get_openapi
    from fastapi.responses import JSONResponse

REFERENCE = "#/components/schemas/{model}"
Parsed = TypeVar("Parsed", bound=BaseModel)
REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    for status, text in (
        (401, "No token, or an unknown one"),
        (403, "The token lacks the scope"),
        (404, "There is no such node"),
        (408, "Too slow"),
        (409, "It does not fit the graph, or the sequence number is taken"),
        (413, "Too large"),
        (422, "Not what it should be"),
        (429, "Too many requests"),
        (503, "Not ready"),
    )
}


class Error(BaseModel):
    """What was wrong, in one line."""

    error: str


async def answered(request: Request, kind: type[Parsed], answer: Callable[[Parsed, bytes], Any]) -> JSONResponse:
    """The answer to a body, which is parsed into what it should be; the first thing that does not fit is named."""
    body = await request.body()

    def parsed_and_answered() -> JSONResponse:
        return JSONResponse(answer(kind.model_validate_json(body), body))

    try:
        return await to_thread.run_sync(parsed_and_answered, abandon_on_cancel=True)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in problem["loc"]) or "the body"
        raise RefusedError(422, f"{place}: {problem['msg']}") from None


def takes(kind: type[BaseModel]) -> dict[str, Any]:
    """What OpenAPI says of a body that :func:`answered` reads."""
    schema = {"$ref": REFERENCE.format(model=kind.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def gives(example: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of an answer."""
    return {200: {"content": {"application/json": {"example": example}}}}


def described(app: FastAPI, models: Iterable[type[BaseModel]]) -> dict[str, Any]:
    """The OpenAPI document, with the models that :func:`answered` reads."""
    document = get_openapi(title=app.title, version=app.version, routes=app.routes)
    schemas = document["components"].setdefault("schemas", {})
    for kind in models:
        schema = kind.model_json_schema(ref_template=REFERENCE)
        schemas.update(schema.pop("$defs", {}) | {kind.__name__: schema})
    return document
