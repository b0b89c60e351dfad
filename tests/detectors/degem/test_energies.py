"""Single energy terms, on rows made by hand."""

from __future__ import annotations

import numpy as np
import torch

from degem import DeGEM, Graph
from degem.data.demo import digits_graph


def pairs_and_a_star() -> Graph:
    """Nodes whose walks of two steps all come back: ends of single edges, and the centre of a star."""
    edges = [(0, 1), (2, 3), (4, 5), (4, 6), (4, 7)]
    features = digits_graph().features[:8]
    return Graph.from_arrays(features=features, edges=edges)


def test_what_is_left_of_a_hop_that_returns_is_no_direction() -> None:
    detector = DeGEM(num_epochs=2).fit(digits_graph())
    affinity = next(term for term in detector.model_.energy_terms if term.name == "affinity")
    graph, found = pairs_and_a_star(), []
    for noise in (0.0, 3e-8):
        changed = graph.features * (1 + noise * np.random.default_rng(0).standard_normal(graph.features.shape))
        inputs = detector._inputs(graph.replace(features=changed.astype(np.float32)))
        with torch.no_grad():
            found.append(affinity(detector.model_.encode(inputs.batch(np.arange(8)))))
    assert torch.allclose(*found, atol=1e-3)


def test_a_critic_that_is_sure_of_every_node_does_not_drown_the_other_terms() -> None:
    detector = DeGEM(num_epochs=2).fit(digits_graph())
    contrast = next(term for term in detector.model_.energy_terms if term.name == "contrast")
    latent = detector.model_.encode(detector._inputs(digits_graph()).batch(np.arange(50)))
    with torch.no_grad():
        before = contrast(latent)
        contrast.bias += 30  # sure of all
        after = contrast(latent)
    assert torch.allclose(before - 30, after, atol=1e-3)  # as far apart as before: none is at a floor
