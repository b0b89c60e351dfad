from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from degem import Graph
from degem.cli.evaluate import NAMES, judged, measured
from degem.data.archives import write_npz


def test_figures_of_a_hand_made_table():
    """Four ID nodes (one of them not for testing) and two OOD ones, scored with a single mistake."""
    is_ood = np.array([False, False, False, False, True, True])
    graph = Graph.from_arrays(
        features=np.eye(6),
        edges=[(0, 1), (1, 0)],
        labels=[0, 1, 1, 0, -1, -1],
        class_names=["red", "blue"],
        masks={"test": np.array([True, True, True, False, False, False])},
    )
    table = pd.DataFrame(
        {
            "score": [1.0, 2.0, 4.0, 99.0, 3.0, 5.0],
            "is_ood": [False, False, True, True, False, True],
            "predicted_class": ["red", "blue", "red", "red", "red", "blue"],
        }
    )
    is_id = judged(graph, is_ood)
    assert is_id.tolist() == [True, True, True, False, False, False]
    figures = measured(table, graph, is_id, is_ood)
    assert list(figures) == list(NAMES)
    assert figures["auroc"] == pytest.approx(5 / 6)
    assert figures["aupr_ood_positive"] == pytest.approx((1 + 2 / 3) / 2)
    assert (figures["flagged_id"], figures["flagged_ood"]) == (pytest.approx(1 / 3), 0.5)
    assert figures["id_accuracy"] == pytest.approx(2 / 3)


def test_without_classes_there_is_no_accuracy():
    graph = Graph.from_arrays(features=np.eye(2), edges=[(0, 1), (1, 0)])
    table = pd.DataFrame({"score": [0.0, 1.0], "is_ood": [False, True], "predicted_class": [None, None]})
    figures = measured(table, graph, np.array([True, False]), np.array([False, True]))
    assert np.isnan(figures["id_accuracy"])
    assert figures["auroc"] == 1


def test_evaluate_a_folder(run, model, folder):
    words = ["evaluate", model, folder, "--ood", "strange", "--label-column", "topic"]
    outcome = run(*words, "--json")
    assert outcome.code == 0, outcome.err
    told = json.loads(outcome.out)
    assert (told["id_nodes"], told["ood_nodes"]) == (80, 40)
    assert set(NAMES) < set(told)
    table = run(*words).out
    assert "AUPR (OOD positive)" in table
    assert "AUPR (ID positive)" in table


def test_evaluate_an_archive(run, model, small_graph, tmp_path):
    write_npz(small_graph.replace(columns={"odd": small_graph.labels == 0}), tmp_path / "g.npz")
    assert run("evaluate", model, tmp_path / "g.npz", "--ood", "odd").code == 0


def test_a_truth_that_is_none(run, model, small_graph, tmp_path):
    write_npz(small_graph.replace(columns={"odd": small_graph.labels}), tmp_path / "g.npz")
    missing = run("evaluate", model, tmp_path / "g.npz", "--ood", "even")
    assert "no column 'even'" in missing.err
    assert "odd" in missing.err
    wrong = run("evaluate", model, tmp_path / "g.npz", "--ood", "odd")
    assert wrong.code == 2
    assert "'2' is neither true nor false" in wrong.err
