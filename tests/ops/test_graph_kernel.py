from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from degem.ops.graph_kernel import kernel_evidence


def test_evidence_is_the_kernel_of_shortest_paths() -> None:
    rng = np.random.default_rng(0)
    dense = np.triu(rng.random((200, 200)) < 0.015, 1)
    adjacency = sp.csr_array((dense | dense.T).astype(np.float32))
    labelled = rng.permutation(200)[:150]  # more than the 64 that one word follows
    labels = rng.integers(0, 2, 150)
    distances = shortest_path(adjacency, unweighted=True)[:, labelled]
    kernel = np.where(distances <= 6, np.exp(-(np.minimum(distances, 40) ** 2) / 2) / np.sqrt(2 * np.pi), 0)
    expected = np.stack([kernel[:, labels == label].sum(axis=1) for label in (0, 1)], axis=1)
    np.testing.assert_allclose(kernel_evidence(adjacency, labelled, labels, 2), expected, rtol=1e-5, atol=1e-8)
