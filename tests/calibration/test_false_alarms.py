"""Over many random draws the false-alarm rate of arriving ID nodes is alpha, whatever the detector."""

import numpy as np
import pytest

from degem import Detector, Graph
from degem.calibration import ScoreResult, conformal_p_values, judge
from degem.detectors.trivial import Degree

QUICK = {"degem": {"num_epochs": 25, "latent_dim": 16}, "msp": {"num_epochs": 60}, "gnnsafe": {"num_epochs": 60}}
ALPHA, DRAWS = 0.2, 12


def noisy_graph(seed: int) -> Graph:
    """Three classes that features hardly tell apart: a fit remembers the nodes that it has seen."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(240) % 3)
    features = rng.standard_normal((3, 60))[labels] + 2.5 * rng.standard_normal((240, 60))
    chance = np.where(labels[:, None] == labels[None, :], 0.04, 0.01)
    edges = np.argwhere(np.triu(rng.random((240, 240)) < chance, 1))
    return Graph.from_arrays(features=features, edges=edges, labels=labels)


def false_alarm_rate(detector: Detector, seed: int, *, in_the_fit: bool) -> float:
    """The share of 60 arriving ID nodes that are flagged; calibration nodes are absent from the fit, or not."""
    graph = noisy_graph(seed)
    order = np.random.default_rng([seed, 1]).permutation(240)
    new, held_out = order[:60], order[60:120]
    before = graph.subgraph(np.sort(order[60:]))
    mask = np.isin(before.node_ids, held_out)
    detector.fit(before, train_mask=~mask, calibration_mask=mask, calibrate=not in_the_fit)
    if in_the_fit:
        p = conformal_p_values(detector.decision_function(before)[mask], detector.decision_function(graph)[new])
    else:
        p = judge(detector, graph, only=new).p_values()
    return float((p <= ALPHA).mean())


@pytest.mark.parametrize("method", sorted(QUICK))
def test_the_false_alarm_rate_of_arriving_nodes_is_alpha(method: str) -> None:
    kind, settings = Detector.registry[method], QUICK[method]
    rates = [false_alarm_rate(kind(seed=seed, **settings), seed, in_the_fit=False) for seed in range(DRAWS)]
    error = np.std(rates, ddof=1) / np.sqrt(DRAWS)
    assert np.mean(rates) == pytest.approx(ALPHA, abs=3 * error)
    assert error < 0.04


class Hubs(Degree):
    """The number of neighbours: what growth moves most."""

    def _score(self, graph: Graph) -> ScoreResult:
        return ScoreResult(graph.degrees.astype(np.float64))


def test_calibration_scores_of_the_graph_before_it_grew_would_break_it() -> None:
    rates = {
        before: [false_alarm_rate(Hubs(), seed, in_the_fit=before) for seed in range(DRAWS)] for before in (True, False)
    }
    errors = {before: np.std(values, ddof=1) / np.sqrt(DRAWS) for before, values in rates.items()}
    assert np.mean(rates[False]) <= ALPHA + 3 * errors[False]
    assert np.mean(rates[True]) > ALPHA + 3 * errors[True]
