"""What the report says, before a browser sees it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from degem import DeGEM, Graph
from degem.detectors.logits import MSP
from degem.detectors.trivial import Degree
from degem.errors import GraphError
from degem.report import page, write_report
from degem.report.html import fill, safe_json


def large_graph(num_nodes: int) -> Graph:
    rng = np.random.default_rng(0)
    edges = rng.integers(num_nodes, size=(5 * num_nodes, 2))
    return Graph.from_arrays(
        features=rng.random((num_nodes, 64)),
        edges=edges[edges[:, 0] != edges[:, 1]],
        labels=rng.integers(5, size=num_nodes),
    )


def test_ten_thousand_nodes_make_a_small_page_quickly(tmp_path: Path) -> None:
    graph = large_graph(10_000)
    detector = DeGEM(num_epochs=2).fit(graph.subgraph(np.arange(1_000)))
    start = time.process_time()  # other work on the machine does not count
    write_report(detector, graph, tmp_path / "report.html", is_ood=np.arange(10_000) % 10 == 0)
    assert time.process_time() - start < 5
    assert (tmp_path / "report.html").stat().st_size < 6_000_000


def test_a_sampled_map_says_so_and_holds_the_most_ood_nodes(fitted: DeGEM, hostile_graph: Graph, monkeypatch) -> None:
    assert page.report_data(fitted, hostile_graph)["map"]["note"] is None
    monkeypatch.setattr(page, "MAX_MAP_NODES", 300)
    shown = page.report_data(fitted, hostile_graph)["map"]
    assert "of 500 nodes" in shown["note"]
    assert len(shown["ids"]) <= 300
    top = np.argsort(-fitted.decision_function(hostile_graph))[: page.NUM_TABLE_NODES]
    assert set(map(str, hostile_graph.node_ids[top])) <= set(shown["ids"])


def test_counts_and_thresholds_match_the_detector(fitted: DeGEM, hostile_graph: Graph) -> None:
    data = page.report_data(fitted, hostile_graph, alpha=0.1, time="year")
    place = data["start"]
    assert data["alphas"][place] == 0.1
    flags = fitted.predict(hostile_graph, alpha=0.1)
    assert data["flagged"][place] == flags.sum()
    assert [group["title"] for group in data["groups"]] == ["by predicted class", "by degree", "by year"]
    for group in data["groups"]:
        assert sum(group["sizes"]) == hostile_graph.num_nodes
        assert sum(counts[place] for counts in group["flagged"]) == flags.sum()


def test_a_method_without_latents_or_hops_still_has_a_page(small_graph: Graph) -> None:
    class Plain(MSP):
        embed = None

    detector = Plain(num_epochs=2).fit(small_graph)
    data = page.report_data(detector, small_graph)
    assert data["map"] is None
    assert {part["kind"] for part in data["table"][0]["parts"]} == {"own", "surroundings"}
    json.dumps(data, allow_nan=False)


def test_a_column_that_is_not_there_is_named(fitted: DeGEM, hostile_graph: Graph) -> None:
    with pytest.raises(GraphError, match="'month'"):
        page.report_data(fitted, hostile_graph, time="month")


def test_no_text_ends_the_script_it_stands_in() -> None:
    text = safe_json({"id": "</script><!--<script>&\u2028"})
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text)["id"] == "</script><!--<script>&\u2028"


def test_the_title_is_escaped() -> None:
    html = fill("report", "<script>alert(1)</script> $style", {})
    assert "<title>&lt;script&gt;alert(1)&lt;/script&gt; $style</title>" in html


def test_trust_is_drawn_as_expected_and_as_measured_on_new_labelled_nodes(
    fitted: DeGEM, hostile_graph: Graph, small_graph: Graph
) -> None:
    names = [trace["name"].split(",")[0] for trace in page.report_data(fitted, hostile_graph)["trust"]["data"]]
    assert names == ["expected"]
    later = hostile_graph.replace(node_ids=np.array([f"later {row}" for row in range(500)], dtype=object))
    shown = page.report_data(fitted, later)["trust"]["data"]
    assert [trace["name"].rsplit(",", 1)[0] for trace in shown][1:] == ["measured", "measured, by the largest softmax"]
    wrong = fitted.predict_class(later)[later.labelled] != later.labels[later.labelled]
    assert shown[1]["y"][-1] == pytest.approx(wrong.mean(), abs=1e-3)
    assert page.report_data(Degree().fit(small_graph), small_graph)["trust"] is None
