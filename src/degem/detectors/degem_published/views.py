"""The training graph and the changed copies that contrast compares it with, as an encoder multiplies with them."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse as sp

from degem.ops.features import Features
from degem.propagation.hop_products import HopProducts, hop_products

Contrast = Literal["none", "dgi", "grace", "sugrl"]
GRACE_EDGE_DROP, GRACE_FEATURE_MASK = 0.2, 0.3


class Views:
    """The graph, and its corrupted (DGI) or augmented (GRACE) copies, made anew in every epoch.

    Arguments:
        adjacency: The adjacency A.
        features: The features X, of shape (n, r).
        num_hops: The number of hops L.
        self_weight: The weight β of the node itself.
        contrast: Which contrastive loss the copies are for.
        rng: Source of permutations, dropped edges and masked features.
    """

    def __init__(
        self,
        adjacency: sp.csr_array,
        features: Features,
        num_hops: int,
        *,
        self_weight: float,
        contrast: Contrast,
        rng: np.random.Generator,
    ) -> None:
        self.adjacency, self.features, self.num_hops, self.self_weight = adjacency, features, num_hops, self_weight
        self.contrast, self.entropy, self.epoch = contrast, int(rng.integers(1 << 62)), 0
        self.graph = self._products(adjacency, features)
        self.copies: list[HopProducts] = []

    @property
    def num_nodes(self) -> int:
        """The number of nodes n."""
        return int(self.adjacency.shape[0])

    def refresh(self) -> None:
        """Make the copies of the next epoch."""
        rng = np.random.default_rng([self.entropy, self.epoch])
        self.epoch += 1
        if self.contrast == "dgi":
            self.copies = [self.graph.permuted(rng.permutation(self.num_nodes))]
        elif self.contrast == "grace":
            self.copies = [self._augmented(rng) for _ in range(2)]

    def _augmented(self, rng: np.random.Generator) -> HopProducts:
        """A view of GRACE: some edges dropped, some feature columns masked."""
        upper = sp.triu(self.adjacency, format="coo")
        kept = rng.random(upper.nnz) >= GRACE_EDGE_DROP
        row, column = upper.row[kept], upper.col[kept]
        half = sp.coo_array((upper.data[kept], (row, column)), shape=upper.shape)
        mask = np.asarray(rng.random(self.features.shape[1]) >= GRACE_FEATURE_MASK, dtype=np.float32)
        return self._products(sp.csr_array(half + half.T), self.features @ sp.diags_array(mask))

    def _products(self, adjacency: sp.csr_array, features: Features) -> HopProducts:
        return hop_products(adjacency, features, self.num_hops, self_weight=self.self_weight)
