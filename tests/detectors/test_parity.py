"""One step of training of every method against a plain transcription: each loss, and every weight after Adam's step.

Dense matrices, double precision, no dropout; weights start where the method's own start. Scores are held against
transcriptions in test_competitors.py, an epoch of the published DeGEM in test_degem_published.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import shortest_path
from sklearn.ensemble import IsolationForest
from torch import Tensor
from torch.nn import functional as F

from degem import Detector, Graph, NodeSet
from degem.nn.diffusion import Diffusion
from degem.ops.langevin import LangevinSettings, fresh_chains
from degem.training import seeded

Weights = dict[str, Tensor]
Losses = dict[str, Tensor]
Step = Callable[[Weights, "Case"], Losses]
NUM_NODES, NUM_TRAIN = 24, 16


class Case:
    """A graph of two classes of 11 nodes and two isolated nodes, and what transcriptions need of it."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        labels = np.arange(NUM_NODES) % 2
        features = rng.random((NUM_NODES, 5)) + np.eye(5)[labels]
        pairs = [(i, j) for i in range(22) for j in range(i) if rng.random() < (0.4 if labels[i] == labels[j] else 0.1)]
        self.train = np.arange(NUM_NODES) < NUM_TRAIN
        known = np.where(self.train, labels, -1)
        self.graph = Graph.from_arrays(features=features, edges=pairs, labels=known)
        x = torch.from_numpy(features)
        self.x = x / x.norm(dim=1, keepdim=True)
        self.a = torch.from_numpy(self.graph.adjacency.toarray()).double()
        looped = self.a + torch.eye(NUM_NODES)
        self.ahat = looped / torch.outer(looped.sum(dim=1), looped.sum(dim=1)).sqrt()
        self.y = torch.from_numpy(labels[:NUM_TRAIN])

    def gcn(self, w: Weights, x: Tensor | None = None) -> Tensor:
        return self.ahat @ self.hidden(w, x) @ w["convolutions.1.lin.weight"].T + w["convolutions.1.bias"]

    def hidden(self, w: Weights, x: Tensor | None = None) -> Tensor:
        z = self.ahat @ (self.x if x is None else x) @ w["convolutions.0.lin.weight"].T + w["convolutions.0.bias"]
        if "norms.0.weight" in w:
            z = batch_norm(z, w["norms.0.weight"], w["norms.0.bias"])
        return F.relu(z)

    def spread(self, e: Tensor) -> Tensor:
        degrees = self.a.sum(dim=1)
        for _ in range(2):
            e = 0.5 * e + 0.5 * torch.where(degrees > 0, self.a @ e / degrees.clamp(min=1), e)
        return e


def batch_norm(z: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return (z - z.mean(dim=0)) / (z.var(dim=0, correction=0) + 1e-5).sqrt() * weight + bias


def energy(logits: Tensor) -> Tensor:
    return -logits.exp().sum(dim=1).log()


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return -(logits.softmax(dim=1)[torch.arange(len(labels)), labels]).log().mean()


def margins(inside: Tensor, outside: Tensor, low: float, high: float) -> Tensor:
    return (inside - low).clamp(min=0).square().mean() + (high - outside).clamp(min=0).square().mean()


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


def fitted(name: str, case: Case, **settings: Any) -> Any:
    detector = Detector.registry[name](**{"num_epochs": 1, "seed": 3} | settings)
    exposure = NodeSet(case.graph, np.array([20, 21, 22])) if detector.needs_exposure else None
    return detector.fit(case.graph, train_mask=case.train, calibrate=False, exposure=exposure)


def first_weights(make: Callable[[], Any], seed: int = 3) -> list[Weights]:
    """The weights that a seed gives the networks which ``make`` builds, in double precision, to be differentiated."""
    with seeded(seed):
        made = make()
    return [
        {name: weight.detach().double().requires_grad_() for name, weight in network.named_parameters()}
        for network in (made if isinstance(made, tuple) else (made,))
    ]


def adam(w: Weights, losses: Losses, rate: float, decay: float = 0.0, only: str = "") -> Weights:
    """Adam's first step: the sign of the gradient, decay included, softened by 1e-8."""
    named = {name: weight for name, weight in w.items() if name.startswith(only)}
    total = sum(losses.values(), start=torch.zeros(()))
    gradients = torch.autograd.grad(total, list(named.values()), allow_unused=True)
    moved = dict(w)
    for (name, weight), gradient in zip(named.items(), gradients, strict=True):
        if gradient is not None:
            gradient = gradient + decay * weight
            moved[name] = weight - rate * gradient / (gradient.abs() + 1e-8)
    return {name: weight.detach() for name, weight in moved.items()}


def check(losses: Losses, history: dict[str, list[float]], moved: Weights, state: Weights) -> None:
    for name, loss in losses.items():
        assert history[name][0] == pytest.approx(loss.item(), rel=1e-4, abs=1e-6), name
    for name, weight in moved.items():
        torch.testing.assert_close(
            state[name].double(), weight, rtol=1e-3, atol=2e-5, msg=lambda m, n=name: f"{n}: {m}"
        )


# -- methods that train one GCN ---------------------------------------------------------------------------------------


def plain(w: Weights, case: Case) -> Losses:
    return {"classification": cross_entropy(case.gcn(w)[:NUM_TRAIN], case.y)}


def outlier_exposure(w: Weights, case: Case) -> Losses:
    logits = case.gcn(w)[20:23]
    uniform = -(logits - logits.logsumexp(dim=1, keepdim=True)).mean()
    return {**plain(w, case), "exposure": 0.5 * uniform}


def energy_margins(w: Weights, case: Case) -> Losses:
    e = energy(case.gcn(w))
    return {**plain(w, case), "exposure": 0.1 * margins(e[:NUM_TRAIN], e[20:23], -5, -1)}


def spread_margins(w: Weights, case: Case) -> Losses:
    e = case.spread(energy(case.gcn(w)))
    return {**plain(w, case), "exposure": margins(e[:NUM_TRAIN], e[20:23], -5, -1)}


def evenness(w: Weights, case: Case) -> Losses:
    logits = case.gcn(w)[:NUM_TRAIN]
    lengths, sums = logits.norm(dim=1), logits.sum(dim=1)
    even = 0.999 * lengths.var() / lengths.mean().detach() + 0.001 * sums.var() / sums.mean().abs().detach()
    return {**plain(w, case), "evenness": even}


GCN_METHODS: dict[str, tuple[Step, dict[str, Any]]] = {
    **dict.fromkeys(("msp", "odin", "mahalanobis", "energy", "gnnsafe", "knn", "grasp"), (plain, {})),
    "residualflow": (plain, {"num_flow_steps": 1}),
    "oe": (outlier_exposure, {}),
    "energy-ft": (energy_margins, {}),
    "gnnsafe++": (spread_margins, {}),
    "nodesafe": (evenness, {"warmup_epochs": 0}),
}


@pytest.mark.parametrize("name", GCN_METHODS)
def test_a_classifier(name: str, case: Case) -> None:
    losses_of, settings = GCN_METHODS[name]
    detector = fitted(name, case, dropout=0.0, **settings)
    (w,) = first_weights(lambda: detector._new_network(2))
    losses = losses_of(w, case)
    moved = adam(w, losses, rate=0.01, decay=5e-4)
    check(losses, detector.history_, moved, dict(detector.network_.state_dict()))


def test_residualflow_starts_with_the_likelihood_of_a_gaussian(case: Case) -> None:
    detector = fitted("residualflow", case, dropout=0.0, num_flow_steps=1)
    latents = torch.from_numpy(detector.embed(case.graph)[:NUM_TRAIN]).double()
    whitened = (latents - detector.means_.double()[case.y]) @ detector.whitening_.double()
    expected = 0.5 * (whitened.square().sum(dim=1) + whitened.shape[1] * math.log(2 * math.pi)).mean()
    assert detector.history_["flow_likelihood"][0] == pytest.approx(expected.item(), rel=1e-4)


def test_gkde_learns_from_a_teacher_and_a_kernel(case: Case) -> None:
    detector = fitted("gkde", case, dropout=0.0, num_teacher_epochs=1, num_epochs=1)
    teacher, student = first_weights(lambda: (detector._new_network(2), detector._new_network(2)))
    taught = adam(teacher, plain(teacher, case), rate=0.01, decay=5e-4)
    alpha = 1 + case.gcn(student).exp()
    strength = alpha.sum(dim=1, keepdim=True)
    p, known = alpha / strength, F.one_hot(case.y, 2)
    risk = ((known - p[:NUM_TRAIN]).square() + (p * (1 - p) / (strength + 1))[:NUM_TRAIN]).sum(dim=1).mean()
    hops = torch.from_numpy(shortest_path(case.a.numpy(), unweighted=True))[:, :NUM_TRAIN]
    kernel = torch.where(hops <= 6, (-hops.square() / 2).exp() / math.sqrt(2 * math.pi), torch.zeros(()))
    prior = 1 + kernel @ known.double()
    divergence = strength[:, 0].lgamma() - prior.sum(dim=1).lgamma() + (prior.lgamma() - alpha.lgamma()).sum(dim=1)
    divergence = divergence + ((alpha - prior) * (alpha.digamma() - strength.digamma())).sum(dim=1)
    advice = case.gcn(taught).softmax(dim=1)
    losses = {"classification": risk, "prior": 0.1 * divergence.mean(), "teacher": 0 * (p * (p / advice).log()).mean()}
    moved = adam(student, losses, rate=0.01, decay=5e-4)
    assert detector.history_["teacher_classification"][0] == pytest.approx(
        plain(teacher, case)["classification"].item()
    )
    check(losses, detector.history_, moved, dict(detector.network_.state_dict()))


# -- methods with networks of their own -------------------------------------------------------------------------------


def test_gpn_warms_its_flows(case: Case) -> None:
    detector = fitted("gpn", case, num_flows=2, dropout=0.0)
    shares = torch.bincount(case.y) / NUM_TRAIN
    (w,) = first_weights(lambda: detector._new_network(shares))
    z = F.relu(case.x @ w["hidden.weight"].T + w["hidden.bias"]) @ w["latent.weight"].T + w["latent.bias"]
    columns = []
    for label, share in enumerate(shares.double()):
        y, log_density = z, torch.zeros(NUM_NODES, dtype=torch.float64)
        for layer in range(2):
            alpha, beta, centre = (w[f"flows.layers.{layer}.{label}.{part}"] for part in ("alpha", "beta", "z_0"))
            slope, away = F.softplus(beta) - alpha.abs(), y - centre
            r = away.norm(dim=1)
            h = slope / (alpha.abs() + r)
            log_density = log_density + (y.shape[1] - 1) * torch.log1p(h)
            log_density = log_density + torch.log(1 + h - slope * r / (alpha.abs() + r) ** 2)
            y = y + h[:, None] * away
        log_density = log_density - 0.5 * (y.square() + math.log(2 * math.pi)).sum(dim=1)
        columns.append((log_density + share.log() + 0.5 * z.shape[1] * math.log(4 * math.pi)).clamp(-30, 30).exp())
    own = torch.stack(columns, dim=1)
    evidence = own
    for _ in range(10):
        evidence = 0.9 * case.ahat @ evidence + 0.1 * own
    alpha = 1 + evidence[:NUM_TRAIN]
    total = alpha.sum(dim=1)
    risk = (total.digamma() - alpha[torch.arange(NUM_TRAIN), case.y].digamma()).sum()
    entropy = alpha.lgamma().sum(dim=1) - total.lgamma() + (total - 2) * total.digamma()
    entropy = (entropy - ((alpha - 1) * alpha.digamma()).sum(dim=1)).sum()
    moved = adam(w, {"loss": risk - detector.entropy_weight * entropy}, rate=detector.learning_rate, only="flows.")
    check({"classification": risk, "entropy": entropy}, detector.history_, moved, dict(detector.network_.state_dict()))


def test_oodgat_ties_attention_to_entropy(case: Case) -> None:
    detector = fitted("oodgat", case, hidden_dim=4, num_heads=2, dropout=0.0, edge_dropout=0.0, margin=0.5)
    (w,) = first_weights(lambda: detector._new_network(2))
    near, x, layers = case.a + torch.eye(NUM_NODES), case.x, []
    for layer in ("first", "second"):
        query = w[f"{layer}.query"]
        values = (x @ w[f"{layer}.linear.weight"].T).unflatten(1, query.shape)
        attention = torch.einsum("nhd,hd->nh", values, query)
        s = attention.sigmoid()
        weights = near[:, :, None] * (1 - (s[:, None] - s[None]).abs()).exp()
        heads = torch.einsum("ijh,jhd->ihd", weights / weights.sum(dim=1, keepdim=True), values)
        out = (heads.flatten(1) if layer == "first" else heads.mean(dim=1)) + w[f"{layer}.bias"]
        layers.append(attention)
        x = F.elu(out)
    logits, first, second = out, layers[0].mean(dim=1), layers[1].mean(dim=1)
    entropy = -(logits.softmax(dim=1) * logits.log_softmax(dim=1)).sum(dim=1)
    doubt = ((entropy - entropy.mean()) / entropy.std()).sigmoid()
    agreement = sum(F.cosine_similarity(each.sigmoid(), doubt, dim=0) for each in (first, second)) / 2
    outlying = torch.cat(layers, dim=1).mean(dim=1).sigmoid() >= 0.5
    assert outlying.any()
    losses = {
        "consistency": -2 * agreement,
        "entropy": -0.05 * logits[outlying].log_softmax(dim=1).mean(),
        "discrepancy": -0.005 * F.cosine_similarity(first, second, dim=0),
        "classification": cross_entropy(logits[:NUM_TRAIN], case.y),
    }
    check(losses, detector.history_, adam(w, losses, rate=0.01), dict(detector.network_.state_dict()))


def gpr_energies(w: Weights, case: Case, x: Tensor, slope: float) -> Tensor:
    h = x @ w["first.weight"].T + w["first.bias"]
    total = w["layer_weights"][0] * (h @ w["energies.0.weight"].T + w["energies.0.bias"])
    for layer in (0, 1):
        h = F.leaky_relu(case.ahat @ (h @ w[f"layers.{layer}.weight"].T + w[f"layers.{layer}.bias"]), slope)
        read = h @ w[f"energies.{layer + 1}.weight"].T + w[f"energies.{layer + 1}.bias"]
        total = total + w["layer_weights"][layer + 1] * read
    return total[:, 0]


def replaced(case: Case, nodes: Tensor, x: Tensor) -> Tensor:
    return case.x.index_copy(0, nodes, x)


def pull(w: Weights, case: Case, nodes: Tensor, x: Tensor, slope: float) -> Tensor:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(gpr_energies(w, case, replaced(case, nodes, x), slope)[nodes].mean(), x)[0]


def clipped(w: Weights, losses: Losses) -> Losses:
    """The losses scaled so that the gradient's norm is at most 5."""
    total = sum(losses.values(), start=torch.zeros(()))
    gradients = torch.autograd.grad(total, list(w.values()), retain_graph=True)
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    return {"total": total * min(1.0, 5 / norm.item())}


def test_energydef_parts_training_nodes_from_langevin_samples(case: Case) -> None:
    settings = {"num_chains": 4, "num_steps": 3, "noise_std": 0.0}
    detector = fitted("energydef", case, dropout=0.0, edge_dropout=0.0, **settings)
    (w,) = first_weights(detector._new_network)
    generator = torch.Generator().manual_seed(3)
    order = torch.randperm(NUM_TRAIN, generator=generator)
    chosen, known = order[:4], order[4:]
    x = fresh_chains(4, 5, LangevinSettings(), generator).double()
    for _ in range(3):
        x = x - pull(w, case, chosen, x, slope=0.0)
    f = gpr_energies(w, case, replaced(case, chosen, x), slope=0.0)
    losses = {"energy": f[known].mean() - f[chosen].mean()}
    moved = adam(w, clipped(w, losses), rate=1e-3, decay=1e-3)
    check(losses, detector.history_, moved, dict(detector.network_.state_dict()))
    scores = gpr_energies({name: value.double() for name, value in detector._state().items()}, case, case.x, slope=0.0)
    np.testing.assert_allclose(detector.decision_function(case.graph), scores, atol=1e-5)


def test_rsl_finds_what_moves_least_and_learns_it(case: Case) -> None:
    settings = {"num_chains": 4, "num_steps": 3, "noise_std": 0.0, "resonance_steps": 2, "num_outliers": 2}
    detector = fitted("rsl", case, dropout=0.0, edge_dropout=0.0, **settings)
    with seeded(3):
        layer, target = torch.nn.Linear(5, 5), F.normalize(torch.randn(5), dim=0).double()
    w = {name: weight.detach().double().requires_grad_() for name, weight in layer.named_parameters()}

    def out(weights: Weights) -> Tensor:
        return F.normalize(case.x @ weights["weight"].T + weights["bias"])

    optimiser, outputs = torch.optim.Adam(list(w.values()), lr=0.01), []
    for _ in range(2):
        outputs.append(out(w).detach())
        optimiser.zero_grad()
        (out(w)[:NUM_TRAIN] - target).square().sum().backward()
        optimiser.step()
    movement = (out(w) - outputs[-1]).norm(dim=1)[NUM_TRAIN:]
    outliers = NUM_TRAIN + movement.argsort()[:2]
    assert detector.outliers_.tolist() == outliers.tolist()

    (w,) = first_weights(detector._new_network)
    order = torch.randperm(NUM_TRAIN, generator=torch.Generator().manual_seed(3))
    chosen, known = order[:4], order[4:]
    centre, x = case.x[outliers].mean(dim=0), torch.zeros(4, 5, dtype=torch.float64)
    for _ in range(3):
        x = 2 * 0.5 * (x - pull(w, case, chosen, x, slope=0.01)) + 2 * 0.5 * (centre - x)
    p = gpr_energies(w, case, replaced(case, chosen, x), slope=0.01).sigmoid()
    losses = {
        "classification": -(1 - p[known]).log().mean() - p[chosen].log().mean(),
        "outliers": -p[outliers].log().mean(),
    }
    moved = adam(w, clipped(w, losses), rate=0.01, decay=1e-3)
    check(losses, detector.history_, moved, dict(detector.network_.state_dict()))


def test_gold_parts_the_graph_from_latents_made_up(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    latents = 0.5 * torch.randn(NUM_NODES, 8, generator=torch.Generator().manual_seed(5))
    monkeypatch.setattr(Diffusion, "sample", lambda self, count: latents)
    settings = {"hidden_dim": 8, "detector_dim": 4, "num_rounds": 1, "round_steps": 1}
    detector = fitted("gold", case, num_diffusion_steps=4, diffusion_epochs=1, **settings)
    start, d = first_weights(lambda: (detector._new_network(2), detector._new_detector()))
    warm = adam(start, plain(start, case), rate=0.01)
    w = {name: weight.requires_grad_() for name, weight in warm.items()}

    def read(e: Tensor) -> Tensor:
        h = e[:, None]
        for layer in (0, 3):
            h = F.relu(h @ d[f"{layer}.weight"].T + d[f"{layer}.bias"])
            h = batch_norm(h, d[f"{layer + 2}.weight"], d[f"{layer + 2}.bias"])
        return h @ d["6.weight"].T + d["6.bias"]

    made_up = case.ahat @ latents.double() @ w["convolutions.1.lin.weight"].T + w["convolutions.1.bias"]
    e, fake_e = (case.spread(energy(logits)) for logits in (case.gcn(w), made_up))
    readings = read(torch.cat([e, fake_e]))
    u, fake_u = (case.spread(energy(part))[:NUM_TRAIN] for part in readings.split(NUM_NODES))
    e, fake_e = e[:NUM_TRAIN], fake_e[:NUM_TRAIN]
    truth = torch.tensor([1] * NUM_TRAIN + [0] * NUM_TRAIN)
    losses = {
        **plain(w, case),
        "margins": margins(e, fake_e, -5, -3),
        "detection": cross_entropy(read(torch.cat([e, fake_e])), truth),
        "divergence": (u - e).clamp(min=0).square().mean() + (fake_e - fake_u).clamp(min=0).square().mean(),
    }
    moved = adam({**w, **{f"detector.{name}": weight for name, weight in d.items()}}, losses, rate=0.01)
    mine = {name: weight for name, weight in moved.items() if not name.startswith("detector.")}
    mine.pop("convolutions.0.bias")  # batch norm takes it away: its gradient is rounding, which Adam makes a step
    check(losses, detector.history_, mine, dict(detector.network_.state_dict()))


def test_gold_draws_latents_by_denoising(case: Case) -> None:
    """The loss and the mean of one step back of DDPM, written out."""
    torch.manual_seed(0)
    model = Diffusion(3, 6, num_steps=10).double()
    betas = torch.linspace(1e-4, 0.02, 10)
    signal = (1 - betas).cumprod(dim=0).double()
    x = torch.randn(8, 3).double()

    def predicted(noisy: Tensor, steps: Tensor) -> Tensor:
        angles = steps[:, None] * torch.tensor([1.0, 1e-2, 1e-4])
        waves = torch.cat([angles.sin(), angles.cos()], dim=1).double()
        times = (
            F.gelu(waves @ model.time[0].weight.T + model.time[0].bias) @ model.time[2].weight.T + model.time[2].bias
        )
        h = F.relu(noisy @ model.first.weight.T + model.first.bias) + times
        return batch_norm(h, model.norm.weight, model.norm.bias) @ model.last.weight.T + model.last.bias

    with seeded(1):
        loss = model.loss(x)
    with seeded(1):
        steps, noise = torch.randint(0, 10, (8,)), torch.randn_like(x)
    t = signal[steps][:, None]
    error = (predicted(t.sqrt() * x + (1 - t).sqrt() * noise, steps) - noise).abs()
    expected = torch.where(error < 1, 0.5 * error.square(), error - 0.5).mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    beta = betas[7].double()
    mean = (x - beta / (1 - signal[7]).sqrt() * predicted(x, torch.full((8,), 7))) / (1 - beta).sqrt()
    torch.testing.assert_close(model.step_back(x, 7), mean, rtol=1e-4, atol=1e-5)


# -- detectors of tables ----------------------------------------------------------------------------------------------


def with_means(case: Case) -> np.ndarray:
    x = np.asarray(case.graph.features, dtype=np.float64)
    degrees = np.maximum(case.a.numpy().sum(axis=1, keepdims=True), 1)
    return np.hstack([x, case.a.numpy() @ x / degrees])


@pytest.mark.parametrize("hop", ["", "-1hop"])
def test_table_detectors(case: Case, hop: str) -> None:
    rows = with_means(case) if hop else np.asarray(case.graph.features, dtype=np.float64)
    known = rows[:NUM_TRAIN]
    scores = {
        name: Detector.registry[name + hop](seed=3)
        .fit(case.graph, train_mask=case.train, calibrate=False)
        .decision_function(case.graph)
        for name in ("ecod", "feature-knn", "iforest")
    }
    left = -np.log((1 + (known[None] <= rows[:, None]).sum(axis=1)) / (NUM_TRAIN + 1))
    right = -np.log((1 + (known[None] >= rows[:, None]).sum(axis=1)) / (NUM_TRAIN + 1))
    skewed = np.where(((known - known.mean(axis=0)) ** 3).sum(axis=0) < 0, left, right)
    ecod = np.max([part.sum(axis=1) for part in (left, right, skewed)], axis=0)
    np.testing.assert_allclose(scores["ecod"], ecod, rtol=0.02)  # ties of means are broken by rounding
    scaled = (rows - known.mean(axis=0)) / known.std(axis=0)
    distances = np.linalg.norm(scaled[:, None] - scaled[None, :NUM_TRAIN], axis=2)
    np.testing.assert_allclose(scores["feature-knn"], np.sort(distances, axis=1)[:, 9], rtol=1e-3, atol=1e-5)
    forest = IsolationForest(random_state=3).fit(known.astype(np.float32))
    np.testing.assert_allclose(scores["iforest"], -forest.score_samples(rows.astype(np.float32)), atol=1e-6)
