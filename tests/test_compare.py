"""Windows that are alike say so at the level asked for; windows that differ are caught."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import permutation_test as scipy_permutation_test

from degem import Graph, read_graph
from degem.compare import MAX_DISTINCT, compare, permutation_test
from degem.detectors.features import ECOD, FeatureKNN
from degem.detectors.logits import MSP


def test_p_values_are_those_of_shuffling() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal(30), rng.standard_normal(50) + 0.4
    ours = permutation_test("mean", first, second, 9_999, rng)
    theirs = scipy_permutation_test(
        (second, first),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        n_resamples=9_999,
        vectorized=True,
        rng=1,
    )
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=0.02)


@pytest.mark.parametrize("size", [60, 3 * MAX_DISTINCT])
def test_alike_windows_are_called_different_as_often_as_the_level_says(size: int) -> None:
    rng = np.random.default_rng(size)
    runs = 300 if size < MAX_DISTINCT else 60
    p = [
        permutation_test("x", rng.exponential(size=size), rng.exponential(size=2 * size), 99, rng).p_value
        for _ in range(runs)
    ]
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / runs))


def test_a_small_shift_in_a_large_window_is_seen() -> None:
    rng = np.random.default_rng(3)
    assert (
        permutation_test("x", rng.standard_normal(40_000), rng.standard_normal(40_000) + 0.05, 999, rng).p_value
        == 0.001
    )


@pytest.fixture(scope="module")
def detector(small_graph: Graph) -> MSP:
    return MSP(num_epochs=20).fit(small_graph)


def of_others(graph: Graph) -> Graph:
    """The same graph of nodes with other names, of which the fit knows nothing."""
    return graph.replace(node_ids=np.array([f"other {row}" for row in range(graph.num_nodes)]))


def test_a_window_against_itself_has_not_drifted(detector: MSP, small_graph: Graph) -> None:
    found = compare(detector, small_graph, small_graph, alpha=0.2)
    assert found.p_value == 1
    assert not found.drifted(0.5)
    assert found.drifts == ()


def test_shuffled_features_are_drift_and_the_columns_are_named(detector: MSP, small_graph: Graph) -> None:
    features = np.array(small_graph.features)
    features[:, [1, 3]] += 4 * features.std()
    other = of_others(small_graph).replace(features=features)
    found = compare(detector, of_others(small_graph), other, alpha=0.2)
    assert found.drifted(0.01)
    assert found.tests[0].current > found.tests[0].reference
    named = [drift for drift in found.drifts if drift.kind == "column"]
    assert {drift.name for drift in named} == {"feature 1", "feature 3"}
    assert min(drift.effect for drift in named) > 0.5
    assert named[0].reference != named[0].current


def test_degrees_and_classes_that_drifted_are_named(detector: MSP, small_graph: Graph) -> None:
    sparse = sp.csr_array(small_graph.adjacency.shape, dtype=np.float32)
    one_class = np.tile(np.flatnonzero(small_graph.labels == 0), 4)[: small_graph.num_nodes]
    features = np.asarray(small_graph.features)[one_class]
    found = compare(
        detector, of_others(small_graph), of_others(small_graph).replace(adjacency=sparse, features=features), alpha=0.2
    )
    named = {(drift.kind, drift.name): drift for drift in found.drifts}
    assert named["degree", "0"].current == "100.0%"
    most = max((drift for drift in found.drifts if drift.kind == "predicted class"), key=lambda drift: drift.effect)
    assert (most.name, float(most.current[:-1]) > 90) == ("0", True)


def test_categories_are_compared_by_their_shares(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for month, share in (("one", 0.2), ("two", 0.6)):
        (tmp_path / month).mkdir()
        nodes = pd.DataFrame({"id": [f"{month} {row}" for row in range(400)], "age": rng.normal(40, 9, 400)})
        nodes["country"] = np.where(rng.random(400) < share, "FR", "DE")
        nodes.to_csv(tmp_path / month / "nodes.csv", index=False)
        nodes[["id"]].assign(to=nodes["id"].shift(1)).iloc[1:].to_csv(tmp_path / month / "edges.csv", index=False)
    detector = ECOD().fit(read_graph(tmp_path / "one"))
    found = compare(detector, read_graph(tmp_path / "one"), read_graph(tmp_path / "two", schema=detector.schema_))
    (drift,) = found.drifts
    assert drift.name == "country"
    assert drift.effect == pytest.approx(0.4, abs=0.08)
    assert drift.current.startswith("FR 6") or drift.current.startswith("FR 5")


def test_the_training_graph_may_be_the_reference(small_graph: Graph) -> None:
    """Training nodes score low because they trained the model; held-out ones and new ones do not."""
    detector = FeatureKNN(num_neighbors=1).fit(small_graph.subgraph(np.arange(90)))
    before = small_graph.subgraph(np.arange(90))
    found = compare(detector, before, small_graph, alpha=0.2)
    assert not found.drifted(0.05)
    assert (len(found.reference_scores), len(found.current_scores)) == (len(detector.calibration_), 30)
    naive = permutation_test(
        "mean",
        detector.decision_function(before),
        detector.decision_function(small_graph)[90:],
        999,
        np.random.default_rng(0),
    )
    assert naive.p_value < 0.05


def test_breakdowns_cover_both_windows_and_are_json(detector: MSP, small_graph: Graph) -> None:
    found = compare(detector, of_others(small_graph), of_others(small_graph).subgraph(np.arange(50)), alpha=0.2)
    for shares in found.breakdowns.values():
        assert sum(share.reference_size for share in shares) == 120
        assert sum(share.current_size for share in shares) == 50
    flagged = sum(
        share.reference_size * share.reference_share for share in found.breakdowns["degree"] if share.reference_size
    )
    assert flagged == pytest.approx(120 * found.tests[1].reference)
    assert flagged > 0
    assert json.loads(json.dumps(found.to_dict()))["current_nodes"] == 50
