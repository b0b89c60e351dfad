"""Events in, scores out: as if the whole graph had been scored, nothing lost, nothing twice."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.serve.streams import PATIENCE, RandomEvents, has_come, submit

from degem import DeGEM, Graph
from degem.calibration import judge
from degem.detectors.trivial import Degree
from degem.errors import DegemError
from degem.propagation.changing import ChangingHops
from degem.serve.events import Batch
from degem.serve.intake import EventError, Intake
from degem.serve.provisional import NewRows
from degem.serve.scoring import RowScoring
from degem.serve.service import Service, UnavailableError
from degem.serve.store import EventStore, SequenceError, StoreError

Serving = Callable[..., Service]


def told(service: Service, node: str) -> dict[str, Any]:
    """What the service says of a node that is there."""
    found = service.answers([node])[0]
    assert found is not None
    return found


def refreshed(service: Service) -> None:
    """Wait until scores have every event."""
    service._wake.set()
    assert has_come(service, service.accepted)


def assert_as_scored_anew(service: Service, tolerance: float = 2e-4) -> None:
    """Every exact score and p-value is that of a pass over the whole graph."""
    graph = service._live.graph()
    judged = judge(service.detector, graph)
    found = service.answers([str(name) for name in graph.node_ids])
    assert {answer["status"] for answer in found if answer} == {"exact"}
    scores = np.array([answer["score"] for answer in found if answer])
    np.testing.assert_allclose(scores, judged.result.scores, rtol=tolerance, atol=tolerance)
    expected = judged.p_values()
    p_values = np.array([answer["p_value"] for answer in found if answer])
    one = 1 / (len(judged.calibration_scores) + 1)  # float noise may turn a near tie
    assert np.abs(p_values - expected).max() <= one + 1e-9
    assert np.mean(np.abs(p_values - expected) > 1e-9) < 0.02
    if judged.result.probabilities is not None:
        likely = judged.result.probabilities.max(axis=1)
        np.testing.assert_allclose([answer["class_probability"] for answer in found if answer], likely, atol=1e-4)


def refresh_wholly(service: Service) -> None:
    """Have the whole graph scored, and wait until that is done."""
    before, until = service.snapshot, time.monotonic() + PATIENCE
    service.ask_for_full_refresh()
    while service.snapshot is before and time.monotonic() < until:
        time.sleep(0.01)
    assert service.snapshot is not before


def weighted(graph: Graph) -> Graph:
    """The graph with weights of edges, and a path through all of its nodes.

    In a pair of nodes that touch no other, hop 2 less the walks that return is nothing but rounding, and the affinity
    term makes a direction of it: no two ways to add then agree.
    """
    size = graph.num_nodes
    path = sp.coo_array((np.ones(size - 1), (np.arange(size - 1), np.arange(1, size))), shape=(size, size))
    upper = sp.csr_array(sp.triu(graph.adjacency) + path)
    upper.data = np.random.default_rng(0).integers(1, 40, upper.nnz).astype(np.float32) / 8
    return graph.replace(adjacency=sp.csr_array(upper + upper.T))


@pytest.mark.parametrize(("seed", "has_weights"), [(0, False), (1, False), (2, True)])
def test_after_any_events_scores_are_those_of_the_whole_graph_scored_anew(
    served: DeGEM, serving: Serving, served_graph: Graph, seed: int, has_weights: bool
) -> None:
    graph = weighted(served_graph) if has_weights else served_graph
    detector = DeGEM(num_epochs=2, latent_dim=16, num_hops=5).fit(graph) if has_weights else served
    service, events = serving(detector, graph), RandomEvents(graph, seed, weighted=has_weights)
    for sequence in range(8):
        last = submit(service, sequence, *events.batch(12))["last_event"]
        if sequence % 3 == 2:
            assert has_come(service, last)
            assert_as_scored_anew(service)
    assert has_come(service, last)
    assert_as_scored_anew(service)
    assert sorted(events.nodes) == sorted(str(name) for name in service._live.graph().node_ids)
    assert service._live.graph().num_edges == len(events.edges)
    assert service._live.graph().is_weighted == has_weights
    assert service.ignored == 0


def test_a_detector_without_rows_has_the_whole_graph_scored(serving: Serving, served_graph: Graph) -> None:
    service, events = serving(Degree().fit(served_graph)), RandomEvents(served_graph, 5)
    for sequence in range(4):
        last = submit(service, sequence, *events.batch(10))["last_event"]
    assert has_come(service, last)
    assert service.snapshot.scoring.refresh == "full"
    assert_as_scored_anew(service)


@pytest.mark.filterwarnings("ignore::degem.errors.CalibrationWarning")
def test_only_the_surroundings_are_refreshed(served: DeGEM, serving: Serving) -> None:
    size = 600  # a long path: what happens at one end is not felt at the other
    features = np.random.default_rng(0).random((size, served.num_features_)) * 16
    path = Graph.from_arrays(features=features, edges=[(row, row + 1) for row in range(size - 1)])
    service = serving(served, path)
    last = submit(service, 0, {"op": "remove_edge", "source": "0", "target": "1"})["last_event"]
    assert has_come(service, last)
    assert 0 < service.snapshot.scoring.num_rows <= 2 + served.num_hops
    assert_as_scored_anew(service)


def test_a_tolerance_is_made_good_by_a_full_refresh(serving: Serving, served_graph: Graph) -> None:
    service, events = serving(tolerance=0.02), RandomEvents(served_graph, 7)
    last = submit(service, 0, *events.batch(30))["last_event"]
    assert has_come(service, last)
    expected = judge(service.detector, service._live.graph()).result.scores
    off = np.abs(service.snapshot.scored.scores[service.snapshot.alive] - expected)
    assert 1e-3 < off.max() < 2
    refresh_wholly(service)
    assert service.snapshot.alive.all()
    assert_as_scored_anew(service)


def test_a_new_node_has_a_provisional_score_at_once_and_an_exact_one_soon(
    serving: Serving, served_graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serving()
    with monkeypatch.context() as patch:
        patch.setattr(service, "_step", lambda: None)  # as if the refresh took long
        features = np.asarray(served_graph.features)
        neighbours = served_graph.node_ids[served_graph.adjacency[[7]].indices]
        answer = submit(
            service,
            0,
            {"op": "add_node", "id": "twin", "features": features[7].tolist()},
            *({"op": "add_edge", "source": "twin", "target": str(name)} for name in neighbours),
            {"op": "add_node", "id": "stranger", "features": features[7][::-1].tolist()},
            {"op": "add_edge", "source": "twin", "target": "stranger"},
        )
        twin, stranger = answer["nodes"]
        assert (twin["status"], twin["event"], twin["degree"]) == ("provisional", 1, len(neighbours) + 1)
        assert told(service, "twin") == twin
    assert has_come(service, answer["last_event"])
    exact = told(service, "twin")
    assert (exact["status"], exact["event"]) == ("exact", answer["last_event"])
    spread = service.snapshot.scored.scores.std()
    assert abs(exact["score"] - twin["score"]) < spread
    assert (twin["score"] < stranger["score"]) == (exact["score"] < told(service, "stranger")["score"])


def test_a_provisional_score_is_as_of_the_snapshot_though_a_refresh_is_under_way(
    serving: Serving, served_graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, features = serving(), np.asarray(served_graph.features)
    near = np.flatnonzero(served_graph.adjacency[[7]].toarray()[0])
    edges = sp.csr_array(np.ones((1, len(near)), dtype=np.float32))
    new = NewRows(features[[7]], near, edges, sp.csr_array((1, 1), dtype=np.float32))
    now = service.snapshot
    before = now.scoring.provisional(new, now.scored)
    update, stopped, going_on = ChangingHops.update, threading.Semaphore(0), threading.Semaphore(0)

    def update_and_wait(*given: Any, **named: Any) -> Any:
        found = update(*given, **named)
        stopped.release()
        assert going_on.acquire(timeout=PATIENCE)
        return found

    monkeypatch.setattr(ChangingHops, "update", update_and_wait)
    events = [{"op": "update_node", "id": f"digit {row}", "features": features[11].tolist()} for row in near]
    last = submit(service, 0, *events)["last_event"]
    for _ in range(5):  # statistics, hops, energies, smoothed energies and classes
        assert stopped.acquire(timeout=PATIENCE)
        during = now.scoring.provisional(new, now.scored)
        assert before is not None
        assert during is not None
        np.testing.assert_array_equal(during.scores, before.scores)
        going_on.release()
    assert has_come(service, last)
    after = service.snapshot.scoring.provisional(new, service.snapshot.scored)
    assert after is not None
    assert after.scores[0] != before.scores[0]


@pytest.mark.parametrize(
    ("owner", "name"), [(RowScoring, "provisional"), (Intake, "rows_of"), (Service, "answers"), (EventStore, "decided")]
)
def test_events_that_are_stored_are_acknowledged_though_scoring_them_fails(
    serving: Serving, served_graph: Graph, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    service, node = serving(), {"op": "add_node", "id": "x", "features": served_graph.features[3].tolist()}

    def broken(*_: Any) -> None:
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, broken)
        if name == "decided":  # asked of nodes that a refresh has overtaken
            patch.setattr(Intake, "add", lambda *_: [])
            patch.setattr(service, "_score_provisionally", lambda _: refreshed(service))
        answer = submit(service, 0, node)
    assert (answer["first_event"], answer["last_event"], answer["duplicate"]) == (1, 1, False)
    assert answer["nodes"] == []
    assert answer["warning"].endswith("RuntimeError: out of memory")
    assert submit(service, 0, node)["duplicate"]
    assert has_come(service, 1)
    assert told(service, "x")["status"] == "exact"


def test_a_batch_that_is_sent_again_counts_once(serving: Serving) -> None:
    service = serving()
    event = {"op": "remove_node", "id": "digit 3"}
    first = submit(service, 0, event)
    again = submit(service, 0, event)
    assert again == {**first, "duplicate": True}
    with pytest.raises(SequenceError, match="other events"):
        submit(service, 0, {"op": "remove_node", "id": "digit 4"})
    assert submit(service, 0, {"op": "remove_node", "id": "digit 4"}, client="another")["first_event"] == 2
    assert service.store.next_sequence("test") == 1


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"op": "add_node", "id": "digit 3", "features": [0.0] * 64}, "is there already"),
        ({"op": "add_node", "id": "x", "features": [0.0] * 63}, "63 features, the model has 64"),
        ({"op": "update_node", "id": "x", "features": [0.0] * 64}, "there is no node 'x'"),
        ({"op": "remove_node", "id": "x"}, "there is no node 'x'"),
        ({"op": "add_edge", "source": "digit 3", "target": "x"}, "there is no node 'x'"),
        ({"op": "add_edge", "source": "digit 3", "target": "digit 4", "weight": 2}, "without weights"),
    ],
)
def test_events_that_do_not_fit_are_refused_and_not_stored(
    serving: Serving, event: dict[str, Any], message: str
) -> None:
    service = serving()
    with pytest.raises(EventError, match=message):
        submit(service, 0, {"op": "remove_node", "id": "digit 5"}, event)
    assert service.store.last_event() == 0
    assert submit(service, 0, {"op": "remove_node", "id": "digit 5"})["last_event"] == 1


def test_a_server_that_starts_again_goes_on_where_it_was(serving: Serving, served_graph: Graph, tmp_path: Path) -> None:
    service, events = serving(), RandomEvents(served_graph, 11)
    for sequence in range(3):
        last = submit(service, sequence, *events.batch(10))["last_event"]
    has_come(service, last)
    decided = service.store.decisions(1000)
    assert decided
    for _ in range(2):  # the second time from a snapshot on the disk
        service._stopping.set()
        service._thread.join()  # no farewell: as if killed
        service = serving()
        assert service.snapshot.event == last
        assert_as_scored_anew(service)
        assert service.store.decisions(1000) == decided
        refresh_wholly(service)
    last = submit(service, 3, *events.batch(10))["last_event"]
    assert has_come(service, last)
    assert_as_scored_anew(service)
    other = served_graph.subgraph(np.arange(200))
    with pytest.raises(DegemError, match="another graph"):
        serving(graph=other)


def test_arrivals_are_decided_once_in_their_order(serving: Serving, served_graph: Graph) -> None:
    service = serving(fdr=0.5)
    ordinary, strange = served_graph.features[3].tolist(), (16 - np.asarray(served_graph.features)[3]).tolist()
    for sequence, features in enumerate([ordinary, strange]):
        event = {"op": "add_node", "id": f"new {sequence}", "features": features}
        has_come(service, submit(service, sequence, event)["last_event"])
    last, first = service.store.decisions(10)
    assert (first["node"], last["node"], first["event"], last["event"]) == ("new 0", "new 1", 1, 2)
    assert told(service, "new 1")["p_value"] == pytest.approx(last["p_value"])
    assert told(service, "new 1")["flagged_online"] == last["flagged"]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_events_of_another_server_on_the_same_database_arrive(
    serving: Serving, served_graph: Graph, request: pytest.FixtureRequest, database: str
) -> None:
    url = request.getfixturevalue("postgresql") if database == "postgresql" else None
    first, second = serving(url=url), serving(url=url)
    last = submit(first, 0, *RandomEvents(served_graph, 3).batch(10))["last_event"]
    assert has_come(first, last)
    assert has_come(second, last)
    np.testing.assert_allclose(first.snapshot.scored.scores, second.snapshot.scored.scores, rtol=1e-5, atol=1e-5)
    events = [decision["event"] for decision in first.store.decisions(100)]
    assert len(events) == len(set(events)) > 0


@pytest.mark.parametrize("call", ["after", "decide"])  # before a refresh, and in the midst of one
def test_a_database_that_is_away_for_a_while_costs_nothing(
    serving: Serving, served_graph: Graph, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    service, events = serving(), RandomEvents(served_graph, 13)

    def away(*_: Any) -> None:
        raise StoreError("the database cannot be used: it is away")

    def wait_until(ready: bool) -> None:
        until = time.monotonic() + PATIENCE
        while service.is_ready != ready and time.monotonic() < until:
            time.sleep(0.01)
        assert service.is_ready == ready

    with monkeypatch.context() as patch:
        patch.setattr(service.store, call, away)
        last = submit(service, 0, *events.batch(10))["last_event"]
        wait_until(False)
        with pytest.raises(UnavailableError, match="it is away"):
            submit(service, 1, {"op": "remove_node", "id": "digit 3"})
        assert told(service, "digit 3")["event"] == 0
    wait_until(True)
    assert has_come(service, last)
    assert_as_scored_anew(service)
    assert len(service.store.decisions(100)) == sum(name not in served_graph.node_ids for name in events.nodes)


def test_a_writer_that_fails_refuses_events_and_still_answers(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serving()

    def broken(*_: Any) -> None:
        raise sqlite3.OperationalError("the disk is gone")

    monkeypatch.setattr(service.store, "after", broken)
    service._wake.set()
    service._thread.join()
    with pytest.raises(DegemError, match="the disk is gone"):
        submit(service, 0, {"op": "remove_node", "id": "digit 3"})
    assert told(service, "digit 3")["status"] == "exact"


def test_calibration_nodes_kept_in_the_model_join_a_graph_that_lacks_them(
    served_graph: Graph, serving: Serving
) -> None:
    size = served_graph.num_nodes
    held_out = np.arange(size) % 5 == 0
    detector = DeGEM(num_epochs=2, latent_dim=16, num_hops=3)
    masks = {"train": ~held_out, "val": held_out}
    detector.fit(served_graph.replace(masks=masks), keep_calibration_nodes=True)
    service = serving(detector, served_graph.subgraph(~held_out))
    assert service.snapshot.alive.sum() == size
    assert len(service.snapshot.scored.calibration) == held_out.sum()
    before = service.snapshot.scored.calibration
    own = int((~held_out).sum())
    near = service._live.ids[service._live.adjacency[own:, :own].indices[0]]
    assert has_come(service, submit(service, 0, {"op": "remove_node", "id": near})["last_event"])
    assert not np.array_equal(service.snapshot.scored.calibration, before)
    refresh_wholly(service)
    assert len(service.snapshot.scored.calibration) == held_out.sum()


def test_a_batch_has_a_client_a_sequence_and_events() -> None:
    with pytest.raises(ValueError, match="two nodes"):
        Batch.model_validate(
            {"client": "c", "sequence": 0, "events": [{"op": "add_edge", "source": "a", "target": "a"}]}
        )


@pytest.mark.parametrize("url", ["nonsense", "postgresql://me:secret@127.0.0.1:1/x", "sqlite:////no/such/folder/x.db"])
def test_a_database_that_is_not_there_is_said_in_one_line_without_passwords(url: str) -> None:
    with pytest.raises(StoreError, match="the database cannot be used") as caught:
        EventStore(url)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
