"""The paths: what they answer, whom, and what they refuse."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from degem import DeGEM, Graph
from degem.calibration import judge
from degem.errors import DegemError
from degem.serve.access import Access, check_host
from degem.serve.limits import JsonLines, Limits
from degem.serve.service import Service

TOKENS = {scope: f"{scope}-0123456789abcdef" for scope in ("read", "write", "admin")}
Connect = Callable[..., TestClient]


@pytest.fixture
def client(connect: Connect) -> TestClient:
    """A client of a server that is open to this machine."""
    return connect()


def batch(sequence: int, *events: dict[str, Any]) -> dict[str, Any]:
    return {"client": "test", "sequence": sequence, "events": list(events)}


def tensor(shape: list[int], data: list[float]) -> dict[str, Any]:
    return {"name": "features", "shape": shape, "datatype": "FP32", "data": data}


def subgraph_request(graph: Graph, **parameters: Any) -> dict[str, Any]:
    edges = np.stack(graph.adjacency.nonzero(), axis=1)
    features = np.asarray(graph.features)
    return {
        "id": "q1",
        "inputs": [
            {"name": "features", "shape": list(features.shape), "datatype": "FP32", "data": features.tolist()},
            {"name": "edges", "shape": list(edges.shape), "datatype": "INT64", "data": edges.ravel().tolist()},
        ],
        "parameters": parameters,
    }


def outputs(response: Any) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    return {output["name"]: output["data"] for output in response.json()["outputs"]}


def test_health_and_model(client: TestClient, served: DeGEM) -> None:
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    assert client.get("/v2").json()["extensions"] == ["graph_events"]
    assert client.get("/v2/models/degem/ready").json() == {"name": "degem", "ready": True}
    model = client.get("/v2/models/degem").json()
    assert model["inputs"][0] == {"name": "features", "datatype": "FP32", "shape": [-1, 64]}
    assert model["parameters"]["refresh"] == "rows"
    assert model["parameters"]["calibration_nodes"] == len(served.calibration_)
    assert client.get("/v2/models/other").status_code == 404


def test_events_arrive_and_nodes_are_told(client: TestClient, served_graph: Graph) -> None:
    features = np.asarray(served_graph.features)[9].tolist()
    added = {"op": "add_node", "id": "a/b?", "features": features}
    joined = {"op": "add_edge", "source": "a/b?", "target": "digit 9"}
    answer = client.post("/v2/events", json=batch(0, added, joined)).json()
    assert (answer["first_event"], answer["last_event"], answer["duplicate"]) == (1, 2, False)
    assert answer["nodes"][0]["status"] in ("provisional", "exact")
    until = time.monotonic() + 30
    while client.get("/v2/status").json()["event"] < 2 and time.monotonic() < until:
        time.sleep(0.02)
    node = client.get("/v2/nodes/a%2Fb%3F", params={"alpha": 0.5}).json()
    assert (node["id"], node["status"], node["event"], node["degree"]) == ("a/b?", "exact", 2, 1)
    assert node["flagged"] == (node["p_value"] <= 0.5)
    assert set(node["terms"]) == {"own", "affinity", "contrast", "latent", "degrees", "prototypes", "classes"}
    both = client.post("/v2/score", json={"ids": ["digit 9", "nobody"]}).json()
    assert (both["nodes"][0]["degree"], both["nodes"][1]) == (served_graph.degrees[9] + 1, None)
    around = client.get("/v2/neighbourhood/a%2Fb%3F", params={"depth": 2}).json()
    assert [each["id"] for each in around["nodes"][:2]] == ["a/b?", "digit 9"]
    assert [0, 1] in around["edges"] or [1, 0] in around["edges"]
    assert client.get("/v2/arrivals").json()["arrivals"][0]["node"] == "a/b?"
    assert client.get("/v2/clients/test").json()["next_sequence"] == 1
    for path, status in (("nodes/nobody", 404), ("nothing", 404), ("arrivals?limit=many", 422), ("events", 405)):
        response = client.get(f"/v2/{path}")
        assert (response.status_code, list(response.json())) == (status, ["error"])
    assert client.post("/v2/admin/refresh").status_code == 202


def test_a_whole_graph_in_a_request_scores_as_the_servers_own(
    client: TestClient, served: DeGEM, served_graph: Graph
) -> None:
    asked = subgraph_request(served_graph)
    asked["inputs"].append(
        {"name": "degrees", "shape": [300], "datatype": "INT64", "data": served_graph.degrees.tolist()}
    )
    response = client.post("/v2/models/degem/infer", json=asked)
    judged = judge(served, served_graph)
    found = outputs(response)
    np.testing.assert_allclose(found["scores"], judged.result.scores, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found["p_values"], judged.p_values(), atol=0.04)
    assert found["flags"] == (np.array(found["p_values"]) <= 0.05).tolist()
    assert set(found["classes"]) <= {str(label) for label in range(10)}
    assert response.json()["id"] == "q1"
    assert response.json()["parameters"]["warnings"] == []


@pytest.mark.filterwarnings("ignore::degem.errors.CalibrationWarning")
def test_with_true_degrees_a_node_whose_surroundings_are_whole_scores_as_in_its_graph(
    connect: Connect, served: DeGEM
) -> None:
    size, reach = 100, served.num_hops + 8  # classes' energies are averaged over 8 steps
    features = np.random.default_rng(0).random((size, 64)) * 16
    path = Graph.from_arrays(features=features, edges=[(row, row + 1) for row in range(size - 1)])
    client = connect(graph=path)
    exact = client.get("/v2/nodes/50").json()["score"]
    asked = subgraph_request(path.subgraph(np.arange(50 - reach, 51 + reach)))
    without = client.post("/v2/models/degem/infer", json=asked)
    assert "normalised by too small degrees" in without.json()["parameters"]["warnings"][0]
    degrees = [2] * (2 * reach + 1)
    asked["inputs"].append({"name": "degrees", "shape": [len(degrees)], "datatype": "INT64", "data": degrees})
    given = client.post("/v2/models/degem/infer", json=asked)
    assert outputs(given)["scores"][reach] == pytest.approx(exact, rel=1e-6)
    assert outputs(given)["scores"][0] != pytest.approx(outputs(without)["scores"][0], rel=1e-4)


def test_a_small_subgraph_is_explained(client: TestClient, served_graph: Graph) -> None:
    asked = subgraph_request(served_graph.subgraph(np.arange(12)), explain=True, alpha=0.2)
    found = client.post("/v2/models/degem/infer", json=asked).json()["parameters"]
    assert found["alpha"] == 0.2
    assert len(found["explanations"]) == 12
    assert found["explanations"][0]["summary"]
    asked = subgraph_request(served_graph.subgraph(np.arange(50)), explain=True)
    assert client.post("/v2/models/degem/infer", json=asked).status_code == 422


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("events", b"{", 422, "the body: Invalid JSON"),
        ("events", b"[" * 100_000, 422, "recursion limit"),
        ("events", batch(0, {"op": "add_node", "id": "x", "features": [1e39]}), 422, "features"),
        ("events", batch(0, {"op": "make", "id": "x"}), 422, "events.0"),
        ("events", batch(0, {"op": "remove_node", "id": "x"}), 409, "no node 'x'"),
        ("events", batch(0, *[{"op": "remove_node", "id": "x"}] * 21), 413, "at most 20"),
        ("events", b" " * 100_001, 413, "more than 100,000 bytes"),
        ("score", {"ids": []}, 422, "ids"),
        ("models/degem/infer", {"inputs": [{"name": "features"}]}, 422, "inputs.0"),
        ("models/degem/infer", {"inputs": [tensor([2, 2], [1, 2, 3])]}, 422, "does not have the shape"),
        ("models/degem/infer", {"inputs": [tensor([30, 1], [1] * 30)]}, 413, "at most 20 nodes"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    connect: Connect, path: str, body: bytes | dict[str, Any], status: int, message: str
) -> None:
    client = connect(limits=Limits(body=100_000, nodes=20, edges=20))
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = client.post(f"/v2/{path}", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == status
    assert message in response.json()["error"]
    assert "\n" not in response.json()["error"]


def test_depth_and_rate_have_limits(connect: Connect) -> None:
    client = connect(limits=Limits(rate=0.01, depth=2))
    assert client.get("/v2/neighbourhood/digit 3", params={"depth": 3}).status_code == 422
    refused = client.get("/v2/health/live", headers={"Authorization": "Bearer another"})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")


def test_time_has_a_limit(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    client = connect(limits=Limits(seconds=0.1))
    monkeypatch.setattr(Service, "answers", lambda *_: time.sleep(1))
    slow = client.post("/v2/score", json={"ids": ["digit 3"]})
    assert (slow.status_code, slow.json()["error"][:9]) == (408, "no answer")


@pytest.mark.parametrize(
    ("token", "statuses"),
    [
        (None, (401, 401, 401)),
        ("nonsense", (401, 401, 401)),
        (TOKENS["read"], (200, 403, 403)),
        (TOKENS["write"], (403, 409, 403)),
        (TOKENS["admin"], (403, 403, 202)),
    ],
)
def test_tokens_have_scopes(connect: Connect, token: str | None, statuses: tuple[int, ...]) -> None:
    client = connect(*(f"{scope} {token}" for scope, token in TOKENS.items()))
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    event = batch(0, {"op": "remove_node", "id": "nobody"})
    found = (
        client.get("/v2/nodes/digit 3", headers=headers),
        client.post("/v2/events", json=event, headers=headers),
        client.post("/v2/admin/refresh", headers=headers),
    )
    assert tuple(response.status_code for response in found) == statuses
    assert all(client.get(path).status_code == 200 for path in ("/", "/v2/health/live", "/v2/health/ready"))
    assert client.get("/metrics").status_code == 401


def test_without_tokens_only_this_machine_is_served(connect: Connect) -> None:
    with pytest.raises(DegemError, match="give tokens"):
        check_host("0.0.0.0", Access([]))
    check_host("0.0.0.0", Access([f"read {TOKENS['read']}"]))
    check_host("localhost", Access([]))
    client = connect(own_hosts=True)
    assert client.get("/v2/status").status_code == 200
    lured = client.get("/v2/status", headers={"Host": "evil.example"})  # a name that points here
    assert lured.status_code == 403
    assert (
        "access-control-allow-origin" not in client.get("/v2/status", headers={"Origin": "http://evil.example"}).headers
    )


@pytest.mark.parametrize("line", ["read short", "root 0123456789abcdef", "0123456789abcdef", "read 0123456789 abcdef"])
def test_tokens_that_cannot_be_read_are_not_shown(line: str) -> None:
    with pytest.raises(DegemError, match="token 1 cannot be read") as error:
        Access([line])
    assert "0123" not in str(error.value)


def test_metrics_and_log(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="degem.serve"):
        answer = client.get("/v2/nodes/nobody", headers={"X-Request-ID": "abc-1"})
    assert answer.headers["X-Request-ID"] == "abc-1"
    (line,) = [json.loads(JsonLines().format(record)) for record in caplog.records if record.message == "request"]
    assert (line["request"], line["path"], line["status"]) == ("abc-1", "/v2/nodes/{node:path}", 404)
    assert client.get("/v2", headers={"X-Request-ID": "a\x01b"}).headers["X-Request-ID"] != "a\x01b"
    text = client.get("/metrics").text
    assert 'degem_requests_total{method="GET",path="/v2/nodes/{node:path}",status="404"} 1.0' in text
    for name in ("queue_events", "refresh_lag_seconds", "flagged_share", "alpha", "score_drift", "request_seconds"):
        assert f"degem_{name}" in text


def test_openapi_has_an_example_for_every_body(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    posted = [each["post"] for each in paths.values() if "requestBody" in each.get("post", {})]
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    bodies = [each["requestBody"]["content"]["application/json"]["schema"]["$ref"] for each in posted]
    assert len(bodies) == 3
    assert all("example" in schemas[body.rpartition("/")[2]] for body in bodies)
    assert paths["/v2/nodes/{node}"]["get"]["responses"]["200"]["content"]["application/json"]["example"]["p_value"]
