"""The matrix products in scoring a graph, and nothing else: what scoring cannot be faster than."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
from degem.detectors.degem.staged import SCORE_SMOOTHING
from degem.detectors.degem.terms import SMOOTHED, TERMS

from degem import DeGEM, Graph
from degem.ops.neighbours import average


def bare_products(detector: DeGEM, graph: Graph) -> Callable[[], None]:
    """A function that does the products of ``detector.decision_function(graph)`` on operands made beforehand."""
    way = detector.way_
    model, encoder, energy = way.module, way.module.encoder, way.module.latent_energy
    num_nodes, num_classes, rank = graph.num_nodes, len(detector.classes_), model.density_rank
    projection = model.projection.numpy()
    hop, spare = (np.ones((num_nodes, projection.shape[1]), dtype=np.float32) for _ in range(2))
    hops = torch.randn(len(model.hops), *hop.shape)
    columns = encoder.hop_weight.shape[2] + num_classes
    by_hop = torch.randn(len(model.hops), hop.shape[1], columns + -columns % 8)  # of the encoder and of the probe
    lengths, active = (torch.randn(num_nodes, layer.in_features) for layer in (encoder.lengths, encoder.fuse))
    latents, hidden = (torch.randn(num_nodes, size) for size in (len(model.latent_mean), len(energy.slope)))
    narrow, terms, weights = torch.randn(num_nodes, rank), torch.randn(num_nodes, len(TERMS)), torch.randn(len(TERMS))
    hop_rows, energies = torch.randn(num_nodes, hop.shape[1]), np.ones((num_nodes, int(SMOOTHED.sum())), np.float32)
    smoothed = float(model.homophily) > 0

    @torch.no_grad()
    def products() -> None:
        features: sp.csr_array | np.ndarray = graph.features
        features @ projection
        for _ in range(model.hops[-1]):
            average(graph.adjacency, hop, self_weight=0.0, out=spare)
        torch.bmm(hops, by_hop)
        encoder.lengths(lengths)
        encoder.fuse(active)
        latents @ model.critic_direction
        latents @ energy.whitening
        latents @ energy.centres.T
        if energy.hidden is not None:
            energy.hidden(latents)
            hidden @ energy.slope
        for _ in range(len(model.density_hops)):
            narrow @ model.own_energy.whitening
            narrow @ model.own_energy.centres.T
        if model.classifier is not None:
            model.classifier(latents)
            hop_rows @ model.prototype_energy.prototypes.T
        terms @ weights
        if smoothed:
            for _ in range(SCORE_SMOOTHING[1]):
                average(graph.adjacency, energies, self_weight=0.5)

    return products
