"""The matrix products in scoring a graph, and nothing else: what scoring cannot be faster than."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch

from degem import DeGEM, Graph
from degem.detectors.degem.staged import CLASS_STEPS, SCORE_STEPS, Staged
from degem.detectors.degem.terms import SMOOTHED
from degem.ops.propagation import propagate


def bare_products(detector: DeGEM, graph: Graph) -> Callable[[], None]:
    """A function that does the products of ``detector.decision_function(graph)`` on operands made beforehand."""
    way = detector.way_
    if not isinstance(way, Staged):
        raise TypeError("the products of the staged training only")
    model, num_nodes = way.module, graph.num_nodes
    projection = model.projection.numpy()
    hop, spare = (np.empty((num_nodes, projection.shape[1]), dtype=np.float32) for _ in range(2))
    wanted = np.random.default_rng(0).standard_normal((len(model.hops), *hop.shape), dtype=np.float32)
    encoder, hops = model.encoder, torch.from_numpy(wanted)
    active = torch.randn(num_nodes, encoder.fuse.in_features)
    flat, latents = (
        torch.randn(num_nodes, len(model.hops) * hop.shape[1]),
        torch.randn(num_nodes, len(model.latent_mean)),
    )
    narrow = torch.randn(num_nodes, model.density_rank)
    energies = np.random.default_rng(1).standard_normal((num_nodes, int(SMOOTHED.sum())), dtype=np.float32)
    classes = np.random.default_rng(1).standard_normal((num_nodes, len(detector.classes_)), dtype=np.float32)
    smoothed = float(model.homophily) > 0

    @torch.no_grad()
    def products() -> None:
        features: sp.csr_array | np.ndarray = graph.features
        features @ projection
        for _ in range(model.hops[-1]):
            propagate(graph.adjacency, hop, out=spare)
        torch.bmm(hops, encoder.hop_weight)
        encoder.fuse(active)
        latents @ model.latent_energy.whitening
        latents @ model.latent_energy.centres.T
        if model.latent_energy.hidden is not None:
            model.latent_energy.hidden(latents)
        for _ in range(3):
            narrow @ model.own_energy.whitening
        if model.classifier is not None and model.probe is not None:
            model.classifier(latents)
            model.probe(flat)
        if smoothed:
            for _ in range(SCORE_STEPS):
                propagate(graph.adjacency, energies)
            for _ in range(CLASS_STEPS):
                propagate(graph.adjacency, classes)

    return products
