"""Scores from rows that the caller propagates are the detector's own."""

from __future__ import annotations

import numpy as np
import pytest

from degem import DeGEM, Graph
from degem.data.demo import digits_graph
from degem.detectors.degem.row_scorer import RowScorer
from degem.ops.neighbours import average, root_degrees
from degem.propagation.hop_features import hop_features
from degem.propagation.smoothing import smooth_over_neighbours


def _by_rows(scorer: RowScorer, graph: Graph):
    projected, statistics = scorer.project(graph.features)
    root = root_degrees(graph.adjacency)
    hops = hop_features(graph.adjacency, projected, scorer.num_hops, self_weight=0.0) / root
    degrees = graph.degrees.astype(np.float32)
    returning = average(graph.adjacency, 1 / np.maximum(degrees, 1)[:, None], self_weight=0.0)[:, 0]
    energies, chances = scorer.energies(hops[list(scorer.hops)], statistics, degrees, returning)
    for column in np.flatnonzero(scorer.smoothed):
        energies[:, [column]] = smooth_over_neighbours(
            graph.adjacency, energies[:, [column]], **vars(scorer.energy_smoothing)
        )
    if chances is not None:
        chances = smooth_over_neighbours(graph.adjacency, chances, **vars(scorer.class_smoothing))
    held_out = scorer.held_out.rows_in(graph)
    assert held_out is not None
    combination = scorer.combination(energies[held_out], degrees[held_out] == 0)
    return scorer.result(energies, degrees == 0, chances, combination)


@pytest.mark.parametrize("labelled", [True, False])
def test_scores_from_rows_are_the_detectors(labelled: bool) -> None:
    graph = digits_graph().subgraph(np.arange(300))
    if not labelled:
        graph = graph.replace(labels=np.full(300, -1))
    detector = DeGEM(num_epochs=2, latent_dim=16, num_hops=4).fit(graph)
    by_rows, expected = _by_rows(detector.row_scorer(), graph), detector.score(graph)
    np.testing.assert_allclose(by_rows.scores, expected.scores, rtol=1e-4, atol=1e-4)
    assert by_rows.terms.keys() == expected.terms.keys()
    if labelled:
        np.testing.assert_allclose(by_rows.probabilities, expected.probabilities, atol=1e-5)
    else:
        assert by_rows.probabilities is None
