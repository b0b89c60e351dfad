"""``degem explain``: reasons for nodes by their ids."""

from __future__ import annotations

import json


def test_nodes_are_explained_in_the_order_asked_for(run, model, folder) -> None:
    done = run("explain", model, folder, "n7", "n3", "--keep-columns", "topic,strange", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [each["node_id"] for each in found] == ["n7", "n3"]
    assert all(each["summary"] and len(each["hop_parts"]) > 1 for each in found)


def test_a_person_reads_a_table(run, model, folder) -> None:
    done = run(
        "explain", model, folder, "n7", "--label-column", "topic", "--keep-columns", "strange", "--reference", folder
    )
    assert done.code == 0, done.err
    assert "n7: score" in done.out
    assert "its own features" in done.out
    assert "near training node n" in done.out


def test_an_unknown_node_is_named(run, model, folder) -> None:
    failed = run("explain", model, folder, "n999", "--keep-columns", "topic,strange")
    assert failed.code == 2
    assert "'n999'" in failed.err
