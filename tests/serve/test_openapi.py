"""What is described is what is there, and nothing that fits the description, or nearly does, is answered by 5xx."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from starlette.testclient import TestClient

Connect = Callable[..., TestClient]
SENT = ("method", "url", "params", "headers", "json", "content")


@pytest.fixture
def client(connect: Connect) -> TestClient:
    return connect()


def operations(document: dict[str, Any]) -> Iterator[Any]:
    schema = schemathesis.openapi.from_dict(document)
    return (result.ok() for result in schema.get_all_operations())


def asked(client: TestClient, operation: Any, mode: GenerationMode, document: dict[str, Any]) -> set[int]:
    """The statuses of the answers to some requests."""
    statuses: set[int] = set()

    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        response = client.request(**{key: value for key, value in case.as_transport_kwargs().items() if key in SENT})
        described = document["paths"][operation.path][operation.method]["responses"]
        assert response.status_code < 500, response.text
        assert str(response.status_code) in described, response.text
        if response.status_code >= 400:
            assert list(response.json()) == ["error"]
        statuses.add(response.status_code)

    ask()
    return statuses


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fitting", "not fitting"])
def test_no_request_is_answered_by_a_failure_of_the_server(client: TestClient, mode: GenerationMode) -> None:
    document = client.get("/openapi.json").json()
    found = {
        operation.label: asked(client, operation, mode, document)
        for operation in operations(document)
        if mode is GenerationMode.POSITIVE or operation.body or operation.query
    }
    assert len(found) >= (15 if mode is GenerationMode.POSITIVE else 4)
    if mode is GenerationMode.POSITIVE:
        assert found["POST /v2/events"] == {409}  # nobody guesses 64 features, or a node that is there
        assert 200 in found["POST /v2/score"] & found["GET /v2/arrivals"]
    else:
        assert all(422 in statuses for statuses in found.values())
