"""``degem explain``: reasons for nodes by their ids."""

from __future__ import annotations

import json

import pytest

from degem import DeGEM
from degem.data.archives import write_npz


def test_nodes_are_explained_in_the_order_asked_for(run, model, folder) -> None:
    done = run("explain", model, folder, "n7", "n3", "--keep-columns", "topic,strange", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [each["node_id"] for each in found] == ["n7", "n3"]
    for each in found:
        rise = each["score"] - each["typical_score"]
        assert sum(part["amount"] for part in each["parts"]) == pytest.approx(rise)


def test_a_person_reads_a_table(run, model, folder) -> None:
    done = run(
        "explain", model, folder, "n7", "--label-column", "topic", "--keep-columns", "strange", "--reference", folder
    )
    assert done.code == 0, done.err
    assert "n7: score" in done.out
    assert "the wider surroundings" in done.out
    assert "together" in done.out
    assert "near training node n" in done.out


def test_an_unknown_node_is_named(run, model, folder) -> None:
    failed = run("explain", model, folder, "n999", "--keep-columns", "topic,strange")
    assert failed.code == 2
    assert "'n999'" in failed.err


def test_names_bring_no_control_characters(run, small_graph, tmp_path) -> None:
    names = [f"f{column}\x1b[2J[/bold]" for column in range(small_graph.num_features)]
    graph = small_graph.replace(feature_names=tuple(names), node_ids=[f"n{row}\x1b[2J" for row in range(120)])
    DeGEM(num_epochs=2, latent_dim=8).fit(graph).save(tmp_path / "model")
    write_npz(graph, tmp_path / "g.npz")
    done = run("explain", tmp_path / "model", tmp_path / "g.npz", "n7\x1b[2J", "--reference", tmp_path / "g.npz")
    assert done.code == 0, done.err
    assert r"n7\x1b[2J: score" in done.out
    assert r"\x1b[2J[/bold]" in done.out
    assert "\x1b" not in done.out + done.err
