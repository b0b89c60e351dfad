"""Each method's score against a plain transcription of its published formula, by dense matrices on a small graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.distributions import Dirichlet, kl_divergence

from degem import Detector, Graph, NodeSet
from degem.detectors.backbone import BackboneCache, BackboneDetector
from degem.detectors.gkde import GKDE
from degem.detectors.split import resolve_training_set
from degem.errors import GraphError
from degem.ops.graph_kernel import kernel_evidence

Array = NDArray[np.float64]
QUICK = {"num_epochs": 30}


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Two cliques-to-be of 15 nodes with their own feature columns, and an isolated node."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 15)
    features = rng.random((31, 6)) * 0.2
    features[:15, :3] += 1
    features[15:30, 3:] += 1
    pairs = [(i, j) for i in range(30) for j in range(i) if labels[i] == labels[j] and rng.random() < 0.3]
    return Graph.from_arrays(features=features, edges=[*pairs, (0, 29)], labels=[*labels, -1])


def fit(name: str, graph: Graph, **settings: Any) -> Any:
    detector = Detector.registry[name](**QUICK | settings)
    exposure = NodeSet(graph, np.array([30])) if detector.needs_exposure else None
    return detector.fit(graph, exposure=exposure)


def unit_rows(graph: Graph) -> Array:
    x = np.asarray(graph.features, dtype=np.float64)
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def dense_layers(detector: Any, graph: Graph, features: Array | None = None) -> tuple[Array, Array]:
    """The hidden layer and the logits of the fitted GCN, by dense products: Â σ(Â X W₁ + b₁) W₂ + b₂."""
    x = unit_rows(graph) if features is None else features
    a = graph.adjacency.toarray() + np.eye(graph.num_nodes)
    a = a / np.sqrt(np.outer(a.sum(axis=1), a.sum(axis=1)))
    state = {name: value.double().numpy() for name, value in detector._state().items()}
    first, second = (f"network.convolutions.{layer}" for layer in (0, 1))
    hidden = np.maximum(a @ x @ state[f"{first}.lin.weight"].T + state[f"{first}.bias"], 0)
    return hidden, a @ hidden @ state[f"{second}.lin.weight"].T + state[f"{second}.bias"]


def softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def energy(logits: Array) -> Array:
    return -np.log(np.exp(logits).sum(axis=1))


def spread(e: Array, graph: Graph, steps: int, own: float) -> Array:
    a = graph.adjacency.toarray()
    for _ in range(steps):
        e = np.array([own * e[i] + (1 - own) * (a[i] @ e / a[i].sum() if a[i].any() else e[i]) for i in range(len(e))])
    return e


@pytest.mark.parametrize("name", ["msp", "oe"])
def test_one_minus_the_largest_softmax(name: str, graph: Graph) -> None:
    detector = fit(name, graph)
    expected = 1 - softmax(dense_layers(detector, graph)[1]).max(axis=1)
    np.testing.assert_allclose(detector.decision_function(graph), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["energy", "energy-ft"])
def test_minus_log_sum_exp(name: str, graph: Graph) -> None:
    detector = fit(name, graph)
    np.testing.assert_allclose(detector.decision_function(graph), energy(dense_layers(detector, graph)[1]), atol=1e-4)


@pytest.mark.parametrize("name", ["gnnsafe", "gnnsafe++", "nodesafe"])
def test_energy_spread_twice_over_neighbours(name: str, graph: Graph) -> None:
    detector = fit(name, graph)
    expected = spread(energy(dense_layers(detector, graph)[1]), graph, steps=2, own=0.5)
    np.testing.assert_allclose(detector.decision_function(graph), expected, atol=1e-4)


def test_grasp_joins_the_confident_half(graph: Graph) -> None:
    detector = fit("grasp", graph)
    logits = dense_layers(detector, graph)[1]
    confidence = softmax(logits).max(axis=1)
    group = (confidence >= np.quantile(confidence, 0.5)).astype(float)
    a = graph.adjacency.toarray()
    degrees = a.sum(axis=1) + group * group.sum()
    e = energy(logits)
    for _ in range(8):
        total = (a + 1.02 * np.outer(group, group)) @ e
        e = np.where(degrees > 0, total / np.maximum(degrees, 1), e)
    np.testing.assert_allclose(detector.decision_function(graph), e, atol=1e-4)


def test_odin_steps_towards_the_predicted_class(graph: Graph) -> None:
    detector = fit("odin", graph, temperature=10.0, perturbation=0.01)
    x = unit_rows(graph)
    predicted = dense_layers(detector, graph, x)[1].argmax(axis=1)

    def loss(moved: Array) -> float:
        p = softmax(dense_layers(detector, graph, moved)[1] / 10)
        return float(-np.log(p[np.arange(len(p)), predicted]).sum())

    gradient = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[index] = 1e-6
        gradient[index] = (loss(x + step) - loss(x - step)) / 2e-6
    step = 0.01 * np.sqrt(np.mean(x**2))
    logits = dense_layers(detector, graph, x - step * np.sign(gradient))[1]
    np.testing.assert_allclose(detector.decision_function(graph), 1 - softmax(logits / 10).max(axis=1), atol=1e-5)


def test_mahalanobis_is_the_distance_to_the_nearest_mean(graph: Graph) -> None:
    train = np.arange(31) < 30
    train[[14, 29]] = False
    detector = Detector.registry["mahalanobis"](**QUICK).fit(graph, train_mask=train, calibrate=False)
    hidden = dense_layers(detector, graph)[0]
    means = [hidden[train & (graph.labels == label)].mean(axis=0) for label in (0, 1)]
    centred = np.vstack([hidden[train & (graph.labels == label)] - means[label] for label in (0, 1)])
    rounding = hidden.shape[1] * np.finfo(np.float32).eps
    precision = np.linalg.pinv(np.cov(centred.T, bias=True), hermitian=True, rcond=rounding)
    expected = np.min([np.einsum("ij,jk,ik->i", hidden - m, precision, hidden - m) for m in means], axis=0)
    np.testing.assert_allclose(detector.decision_function(graph), expected, rtol=0.01, atol=0.01)


def test_knn_is_the_distance_to_the_kth_training_node(graph: Graph) -> None:
    train = np.arange(31) < 28
    detector = Detector.registry["knn"](num_neighbors=3, **QUICK).fit(graph, train_mask=train, calibrate=False)
    hidden = dense_layers(detector, graph)[0]
    unit = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
    distances = np.linalg.norm(unit[:, None] - unit[None, train], axis=2)
    np.testing.assert_allclose(detector.decision_function(graph), np.sort(distances, axis=1)[:, 2], atol=1e-3)


def test_gkde_is_the_vacuity(graph: Graph) -> None:
    detector = fit("gkde", graph, num_teacher_epochs=10)
    alpha = 1 + np.exp(dense_layers(detector, graph)[1])
    np.testing.assert_allclose(detector.decision_function(graph), 2 / alpha.sum(axis=1), atol=1e-4)
    np.testing.assert_allclose(detector.score(graph).probabilities, alpha / alpha.sum(axis=1, keepdims=True), atol=1e-4)


def test_gkde_measures_its_prior_precisely_where_evidence_is_large() -> None:
    """In single precision the divergence of large Dirichlets is rounding noise, negative as often as not."""
    labels = np.array([-1, *([0, 1] * 3000)])
    star = Graph.from_arrays(features=np.eye(len(labels), 2), edges=[(0, i) for i in range(1, 6001)], labels=labels)
    training, _, _ = resolve_training_set(star, None, None, None, 0, calibrate=False)
    evidence = torch.from_numpy(
        kernel_evidence(star.adjacency, training.labelled_nodes, labels[training.labelled_nodes], 2)
    )
    logits = (evidence.log() + 0.001).float()
    losses = GKDE(prior_weight=1.0)._advised(torch.zeros(6001, 2), training)(logits, 0)
    exact = kl_divergence(Dirichlet(1 + logits.double().exp()), Dirichlet(1 + evidence.double())).mean()
    assert float(losses["prior"]) == pytest.approx(float(exact), rel=0.01)


def test_gpn_is_diffused_class_evidence(graph: Graph) -> None:
    detector = fit("gpn", graph, num_flows=2)
    network = detector.network_
    z = network.encode(torch.from_numpy(unit_rows(graph)).float()).detach().double()
    columns = []
    for label, share in enumerate(network.class_shares.double()):
        y, log_density = z, torch.zeros(len(z), dtype=torch.float64)
        for layer in network.flows.layers:
            flow = layer[label]
            alpha = flow.alpha.detach().double().abs()
            beta = torch.nn.functional.softplus(flow.beta.detach().double()) - alpha
            away = y - flow.z_0.detach().double()
            r = away.norm(dim=1)
            h = beta / (alpha + r)
            log_density += (z.shape[1] - 1) * torch.log1p(h) + torch.log(1 + h - beta * r / (alpha + r) ** 2)
            y = y + h[:, None] * away
        log_density += torch.distributions.Normal(0, 1).log_prob(y).sum(dim=1)
        columns.append((log_density + share.log() + 0.5 * z.shape[1] * np.log(4 * np.pi)).clamp(-30, 30).exp())
    own = torch.stack(columns, dim=1).numpy()
    a = graph.adjacency.toarray() + np.eye(graph.num_nodes)
    a = a / np.sqrt(np.outer(a.sum(axis=1), a.sum(axis=1)))
    diffused = own
    for _ in range(10):
        diffused = 0.9 * a @ diffused + 0.1 * own
    expected = {
        "evidence": -np.log(diffused.sum(axis=1)),
        "own evidence": -np.log(own.sum(axis=1)),
        "probability": 1 - (1 + diffused).max(axis=1) / (1 + diffused).sum(axis=1),
    }
    for score, values in expected.items():
        detector.set_params(uncertainty=score)
        np.testing.assert_allclose(detector.decision_function(graph), values, rtol=1e-4, atol=1e-3)


def test_oodgat_is_the_mean_attention(graph: Graph) -> None:
    detector = fit("oodgat", graph, num_heads=2, hidden_dim=4)
    state = {name: value.double().numpy() for name, value in detector._state().items()}
    x = unit_rows(graph)
    near = graph.adjacency.toarray() + np.eye(graph.num_nodes) > 0
    attention = []
    for layer in ("first", "second"):
        query = state[f"{layer}.query"]
        values = (x @ state[f"{layer}.linear.weight"].T).reshape(len(x), *query.shape)
        heads = []
        for head in range(2):
            a = values[:, head] @ query[head]
            s = 1 / (1 + np.exp(-a))
            w = np.exp(1 - np.abs(s[:, None] - s[None])) * near
            heads.append(w / w.sum(axis=1, keepdims=True) @ values[:, head])
            attention.append(a)
        x = (np.hstack(heads) if layer == "first" else np.mean(heads, axis=0)) + state[f"{layer}.bias"]
        x = np.where(x > 0, x, np.expm1(x)) if layer == "first" else x
    expected = 1 / (1 + np.exp(-np.mean(attention, axis=0)))
    np.testing.assert_allclose(detector.decision_function(graph), expected, atol=1e-5)
    np.testing.assert_allclose(detector.score(graph).probabilities, softmax(x), atol=1e-4)


def test_residualflow_starts_as_the_gaussian_and_learns(graph: Graph) -> None:
    detector = fit("residualflow", graph, num_flow_steps=30)
    hidden = dense_layers(detector, graph)[0]
    means, whitening = detector.means_.double().numpy(), detector.whitening_.double().numpy()
    squared = np.min([(((hidden - mean) @ whitening) ** 2).sum(axis=1) for mean in means], axis=0)
    gaussian = 0.5 * (squared + hidden.shape[1] * np.log(2 * np.pi))
    detector.flow_ = detector._new_flow(2)
    np.testing.assert_allclose(detector.decision_function(graph), gaussian, rtol=1e-3)
    likelihood = detector.history_["flow_likelihood"]
    assert likelihood[-1] < likelihood[0]


def test_a_shared_network_is_trained_once_and_changes_no_score(graph: Graph) -> None:
    cache = BackboneCache()
    names = [name for name, kind in Detector.registry.items() if issubclass(kind, BackboneDetector)]
    assert len(names) == 9
    networks = set()
    for name in names:
        settings = {"num_flow_steps": 3} if name == "residualflow" else {}
        alone = fit(name, graph, **settings)
        shared: Any = Detector.registry[name](**QUICK | settings)
        shared.share(cache).fit(graph)
        networks.add(id(shared.network_))
        np.testing.assert_array_equal(shared.decision_function(graph), alone.decision_function(graph))
    assert len(networks) == 1
    other = Detector.registry["msp"](**QUICK, seed=1).share(cache).fit(graph)
    assert id(other.network_) not in networks


@pytest.mark.parametrize("name", ["gold", "energydef", "rsl"])
def test_one_node_to_learn_from_is_too_few(name: str) -> None:
    pair = Graph.from_arrays(features=np.eye(2), edges=[(0, 1)], labels=[0, 0])
    with pytest.raises(GraphError, match="at least two"):
        Detector.registry[name]().fit(pair)


def test_exposure_features_must_fit(graph: Graph) -> None:
    narrow = graph.replace(features=np.array(graph.features[:, 1:]))
    with pytest.raises(ValueError, match="exposure graph has 5 feature columns"):
        Detector.registry["oe"](**QUICK).fit(graph, exposure=NodeSet(narrow, np.array([30])))


def test_a_gcn_reaches_the_published_accuracy_on_cora(data_dir: Any) -> None:
    from degem.data.datasets import load_dataset

    cora = load_dataset("cora", data_dir)
    test = cora.masks["test"]
    accuracies = [
        (Detector.registry["msp"](seed=seed).fit(cora).predict_class(cora) == cora.labels)[test].mean()
        for seed in range(5)
    ]
    assert abs(np.mean(accuracies) - 0.81) < 0.015
