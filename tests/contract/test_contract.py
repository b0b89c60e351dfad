"""Every registered detector, taken through the same checks."""

from __future__ import annotations

import copy
import functools
import hashlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.metrics import roc_auc_score

from degem import Detector, Graph, NodeSet, parameters
from degem.errors import DegemError, GraphError, NotFittedError, ParameterError, ScoreWarning
from degem.explain import explain

METHODS = sorted(Detector.registry)
# Enough to learn an easy graph, little enough for a suite: used where a method has such a parameter.
QUICK = {"num_epochs": 40, "num_teacher_epochs": 20, "num_flow_steps": 20, "latent_dim": 16, "num_flows": 2}
QUICK |= {"num_diffusion_steps": 20, "diffusion_epochs": 10}
# What the quick settings are too small for.
NEEDED_FOR_SIGN: dict[str, dict[str, Any]] = {
    "gpn": {"num_epochs": 100, "num_flows": 10},
    "degem-published": {"num_epochs": 200, "latent_dim": 512},
}
# One number a node and a fixed direction: whether a shift raises it says nothing about their sign.
ONE_NUMBER = {"degree", "nonzeros", "norm"}
# They can only learn outliers that are in the training graph, unlabelled.
NEEDS_OUTLIERS_IN_SIGHT = {"oodgat", "rsl"}


def make(method: str, **changes: Any) -> Detector:
    kind = Detector.registry[method]
    known = parameters.names(kind)
    return kind(**{name: value for name, value in QUICK.items() if name in known} | changes)


def easy_graph(seed: int = 0, num_nodes: int = 150) -> Graph:
    """Three classes, each with its own block of feature columns; the last two nodes are isolated."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(num_nodes) % 3)
    features = 0.05 * rng.random((num_nodes, 12))
    features[:, :9] += np.repeat(np.eye(3)[labels], 3, axis=1) * (0.8 + 0.4 * rng.random((num_nodes, 9)))
    chance = np.where(labels[:, None] == labels[None, :], 0.12, 0.005)
    chance[-2:] = chance[:, -2:] = 0
    edges = np.argwhere(np.triu(rng.random((num_nodes, num_nodes)) < chance, 1))
    return Graph.from_arrays(features=features, edges=edges, labels=labels)


def easy_shift(graph: Graph, seed: int = 1) -> Graph:
    """The same number of nodes, all classes mixed in each, large values in columns never used, random edges."""
    rng = np.random.default_rng(seed)
    features = rng.random(graph.features.shape)
    features[:, 9:] *= 6
    edges = np.argwhere(np.triu(rng.random((graph.num_nodes,) * 2) < 0.045, 1))
    return Graph.from_arrays(features=features, edges=edges)


GRAPH = easy_graph()
SHIFTED = easy_shift(GRAPH)
JOINED = Graph.from_arrays(
    features=np.vstack([GRAPH.features, SHIFTED.features]),
    adjacency=sp.block_diag([GRAPH.adjacency, SHIFTED.adjacency]),
    labels=np.concatenate([GRAPH.labels, SHIFTED.labels]),
)
EXPOSURE = NodeSet(easy_shift(GRAPH, seed=2), np.arange(60))


def fit(detector: Detector, graph: Graph = GRAPH, **arguments: Any) -> Detector:
    return detector.fit(graph, exposure=EXPOSURE if detector.needs_exposure else None, **arguments)


@functools.cache
def fitted(method: str) -> Detector:
    """One fitted detector a method, which tests only read."""
    return fit(make(method))


def fingerprint(graph: Graph) -> str:
    digest = hashlib.sha256()
    features = graph.features.toarray() if sp.issparse(graph.features) else graph.features
    parts = (features, graph.adjacency.indptr, graph.adjacency.indices, graph.labels, graph.node_ids)
    for part in (*parts, *graph.masks.values()):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


pytestmark = pytest.mark.parametrize("method", METHODS)


def test_it_says_what_it_is(method: str) -> None:
    kind = Detector.registry[method]
    assert kind.name == method
    assert kind.paper
    assert kind.__doc__
    assert all(isinstance(flag, bool) for flag in (kind.needs_labels, kind.needs_exposure))


def test_scores_are_one_finite_double_a_node(method: str) -> None:
    for graph in (GRAPH, SHIFTED):
        scores = fitted(method).decision_function(graph)
        assert scores.shape == (graph.num_nodes,)
        assert scores.dtype == np.float64
        assert np.isfinite(scores).all()


def test_the_same_seed_gives_the_same_scores(method: str) -> None:
    again = fit(make(method))
    np.testing.assert_array_equal(again.decision_function(SHIFTED), fitted(method).decision_function(SHIFTED))


def test_global_randomness_is_neither_used_nor_moved(method: str) -> None:
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 - the legacy state is what must stay put
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    fit(make(method, **({"num_epochs": 2} if "num_epochs" in parameters.names(Detector.registry[method]) else {})))
    assert torch.equal(before[0], torch.random.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


def test_renaming_nodes_renames_scores(method: str) -> None:
    order = np.random.default_rng(3).permutation(GRAPH.num_nodes)
    straight = fitted(method).decision_function(GRAPH)
    renamed = fitted(method).decision_function(GRAPH.subgraph(order))
    np.testing.assert_allclose(renamed, straight[order], rtol=1e-3, atol=1e-4 * max(1.0, np.ptp(straight)))


def test_an_easy_shift_is_seen_and_the_sign_is_right(method: str) -> None:
    if method in ONE_NUMBER:
        pytest.skip(f"{method} looks at one number in a fixed direction, which this shift need not follow")
    if method in NEEDS_OUTLIERS_IN_SIGHT:
        scores = fit(make(method), JOINED).decision_function(JOINED)
    else:
        needed = NEEDED_FOR_SIGN.get(method)
        detector = fit(make(method, **needed)) if needed else fitted(method)
        scores = np.concatenate([detector.decision_function(GRAPH), detector.decision_function(SHIFTED)])
    assert roc_auc_score(JOINED.labels < 0, scores) > 0.8


def test_sparse_and_dense_features_give_the_same_scores(method: str) -> None:
    sparse = GRAPH.replace(features=sp.csr_array(GRAPH.features))
    scores = fitted(method).decision_function(GRAPH)
    rounding = 1e-4 * scores.std()  # a score's zero means nothing, so neither does an error in units of the score
    np.testing.assert_allclose(fitted(method).decision_function(sparse), scores, rtol=0, atol=rounding)


def test_saved_and_loaded_it_is_the_same_to_the_bit(method: str, tmp_path: Path) -> None:
    detector = fitted(method)
    detector.save(tmp_path / "model")
    loaded = Detector.load(tmp_path / "model")
    assert type(loaded) is type(detector)
    assert loaded.get_params() == detector.get_params()
    np.testing.assert_array_equal(loaded.decision_function(SHIFTED), detector.decision_function(SHIFTED))
    np.testing.assert_array_equal(loaded.p_values(SHIFTED), detector.p_values(SHIFTED))
    np.testing.assert_array_equal(classes_of(loaded), classes_of(detector))


def classes_of(detector: Detector) -> Any:
    try:
        return detector.predict_class(SHIFTED)
    except DegemError:  # a detector that predicts no classes
        return None


def test_scores_are_explained_by_parts_that_add_up(method: str) -> None:
    for found in explain(fitted(method), GRAPH, [0, 7]):
        assert sum(part.amount for part in found.parts) == pytest.approx(found.score - found.typical_score, abs=1e-6)
        assert {part.kind for part in found.parts} >= {"own", "surroundings"}


def test_the_graph_and_the_parameters_stay_as_they_were(method: str) -> None:
    graph = easy_graph(seed=4)
    detector = make(method)
    before, settings = fingerprint(graph), copy.deepcopy(detector.get_params())
    fit(detector, graph).decision_function(graph)
    assert fingerprint(graph) == before
    assert detector.get_params() == settings


def test_parameters_can_be_read_set_and_copied(method: str) -> None:
    detector = make(method, seed=3)
    twin = type(detector)(**detector.get_params(deep=False))
    assert twin.get_params() == detector.get_params()
    assert twin.set_params(seed=8).get_params()["seed"] == 8
    assert detector.seed == 3
    with pytest.raises(ParameterError, match="sed"):
        detector.set_params(sed=1)


def test_dropping_everything_is_refused_by_name(method: str) -> None:
    for name in parameters.names(Detector.registry[method]):
        if "dropout" in name:
            with pytest.raises(ParameterError, match=f"{name} = 1.0 is not allowed"):
                fit(make(method, **{name: 1.0}))


def test_a_graph_with_other_columns_is_refused(method: str) -> None:
    narrow = GRAPH.replace(features=np.array(GRAPH.features[:, :-1]))
    with pytest.raises(GraphError, match="feature columns"):
        fitted(method).decision_function(narrow)


def test_it_must_be_fitted_first(method: str) -> None:
    with pytest.raises(NotFittedError, match="fit"):
        make(method).decision_function(GRAPH)


def test_without_labels_it_works_or_says_that_it_needs_them(method: str) -> None:
    bare = GRAPH.replace(labels=np.full(GRAPH.num_nodes, -1))
    detector = make(method)
    if detector.needs_labels:
        with pytest.raises(GraphError, match="label"):
            fit(detector, bare)
    else:
        assert np.isfinite(fit(detector, bare).decision_function(bare)).all()


def test_without_exposure_nodes_it_works_or_says_that_it_needs_them(method: str) -> None:
    if not Detector.registry[method].needs_exposure:
        pytest.skip(f"{method} uses no exposure nodes")
    with pytest.raises(DegemError, match="exposure"):
        make(method).fit(GRAPH)


def test_one_class_is_enough(method: str) -> None:
    single = GRAPH.replace(labels=np.zeros(GRAPH.num_nodes, dtype=np.int64))
    assert np.isfinite(fit(make(method), single).decision_function(single)).all()


def test_a_graph_without_edges_and_one_node_can_be_scored(method: str) -> None:
    detector = fitted(method)
    scattered = GRAPH.replace(adjacency=sp.csr_array(GRAPH.adjacency.shape, dtype=np.float32))
    assert np.isfinite(detector.decision_function(scattered)).all()
    assert np.isfinite(detector.decision_function(GRAPH.subgraph([7]))).all()


def test_it_learns_from_a_graph_without_edges(method: str) -> None:
    scattered = GRAPH.replace(adjacency=sp.csr_array(GRAPH.adjacency.shape, dtype=np.float32))
    assert np.isfinite(fit(make(method), scattered).decision_function(scattered)).all()


def test_flags_are_zero_or_one_and_few_on_calibration_like_nodes(method: str) -> None:
    held_out = np.arange(GRAPH.num_nodes) % 3 == 0
    detector = fit(make(method), calibration_mask=held_out)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ScoreWarning)  # every node of this graph has as many non-zeros
        flags = detector.predict(GRAPH, alpha=0.05)
    assert set(np.unique(flags)) <= {0, 1}
    assert flags[held_out].mean() <= 0.05
    p = detector.p_values(GRAPH)
    assert ((p > 0) & (p <= 1)).all()


def test_progress_and_history_are_told(method: str) -> None:
    steps: list[Any] = []
    detector = fit(make(method), on_progress=steps.append)
    assert steps[-1].done == steps[-1].total
    assert all(np.isfinite(values).all() for values in detector.history_.values())


DEGENERATE = {
    "no variation": np.ones((12, 4)),
    "nothing": np.zeros((12, 4)),
    "one node unlike the others": np.eye(12)[:, :4],
    "enormous": 1e30 * np.random.default_rng(0).random((12, 4)),
    "one column": np.arange(12.0)[:, None],
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_features_give_scores_a_warning_or_one_line(method: str, case: str) -> None:
    graph = Graph.from_arrays(
        features=DEGENERATE[case], edges=[(i, i + 1) for i in range(11)], labels=np.arange(12) % 2
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            quick = {"num_epochs": 3} if "num_epochs" in parameters.names(Detector.registry[method]) else {}
            detector = make(method, **quick)
            exposure = NodeSet(graph, np.array([11])) if detector.needs_exposure else None
            scores = detector.fit(graph, exposure=exposure).decision_function(graph)
        except DegemError:
            return
    assert np.isfinite(scores).all()
    told = [entry for entry in caught if entry.category is ScoreWarning]
    assert bool(told) == bool((scores == scores[0]).all())
