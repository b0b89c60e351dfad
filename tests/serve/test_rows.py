"""Rows of new nodes before they are in the graph, against those after."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from degem import DeGEM, Graph
from degem.serve.provisional import NewRows, ProvisionalRows
from degem.serve.rows import ScoreRows


@pytest.mark.parametrize("weight", [1.0, 2.5])
def test_two_hops_of_new_nodes_are_exact_before_they_are_in_the_graph(
    served: DeGEM, served_graph: Graph, weight: float
) -> None:
    """Two nodes that are joined, one of them to a node of the graph: two hops do not reach beyond its neighbours."""
    detector = DeGEM(num_epochs=2, latent_dim=16, num_hops=2).fit(served_graph)
    scorer = detector.row_scorer()
    features, size = np.asarray(served_graph.features), served_graph.num_nodes
    new = features[[3, 70]] + 1

    rows, everything = ScoreRows(scorer), np.arange(size)
    rows.update(served_graph.adjacency, everything, everything, lambda some: features[some])
    edges = sp.csr_array(np.array([[weight], [0]], dtype=np.float32))
    among = sp.csr_array(np.array([[0, weight], [weight, 0]], dtype=np.float32))
    energies, chances, isolated = ProvisionalRows(rows).energies(NewRows(new, np.array([5]), edges, among))

    joined = sp.lil_array((size + 2, size + 2), dtype=np.float32)
    joined[:size, :size] = served_graph.adjacency
    for one, other in ((size, 5), (size, size + 1)):
        joined[one, other] = joined[other, one] = weight
    after, everything, features = ScoreRows(scorer), np.arange(size + 2), np.vstack([features, new])
    after.update(sp.csr_array(joined), everything, everything, lambda some: features[some])

    plain = ~scorer.smoothed
    np.testing.assert_allclose(energies[:, plain], after.energies.values[0, size:][:, plain], rtol=1e-3, atol=1e-4)
    smooth = after.smoothed_energies(slice(size, None))
    spread = rows.smoothed_energies().std(axis=0)
    assert (np.abs(energies - smooth) < 0.5 * spread).all()
    assert chances is not None
    assert not isolated.any()
    nobody = np.empty(0, dtype=np.int64)
    alone = NewRows(new[:1], nobody, *(sp.csr_array((1, width), dtype=np.float32) for width in (0, 1)))
    assert ProvisionalRows(rows).energies(alone)[2].all()
