"""Features for graphs that have none."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.ops.neighbours import divisors, strengths


def structural_features(adjacency: sp.csr_array, *, dim: int = 32, seed: int = 0) -> NDArray[np.float32]:
    r"""Log-degree and a random projection of the adjacency: :math:`[\log(1 + \deg) \,\|\, \hat{A}R \,\|\, \hat{A}^2R]`.

    :math:`\hat{A} = D^{-1}A` averages over neighbours and :math:`R` is Gaussian, seeded. Only log-degree means the
    same thing on two different graphs; the projection tells nodes of one graph apart.

    Arguments:
        adjacency: The adjacency :math:`A`, of shape :math:`(n, n)`.
        dim: The number of columns of the projection; half come from one hop, half from two.
        seed: Seed of :math:`R`.

    Example:
        >>> path = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
        >>> structural_features(path, dim=4).shape
        (3, 5)
    """
    num_nodes = adjacency.shape[0]
    degrees = strengths(adjacency)
    average = sp.diags_array(1 / divisors(adjacency), dtype=np.float32) @ adjacency
    random = np.random.default_rng(seed).standard_normal((num_nodes, dim // 2), dtype=np.float32)
    one_hop = average @ random
    two_hops = average @ one_hop
    return np.hstack([np.log1p(degrees)[:, None], one_hop, two_hops]).astype(np.float32)
