"""Hop features of the training graph and of the changed copies that contrast compares it with."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from degem.detectors.degem.recurrent_model import Contrast
from degem.ops.propagation import hop_features

GRACE_EDGE_DROP, GRACE_FEATURE_MASK = 0.2, 0.3


class Views:
    """The graph's hop features, and those of its corrupted (DGI) or augmented (GRACE) copies, made anew now and then.

    Arguments:
        adjacency: The adjacency A.
        x: The features X, of shape (n, r).
        num_hops: The number of hops L.
        self_weight: The weight β of the node itself.
        contrast: Which contrastive loss the copies are for.
        refresh_every: Steps between two corruptions.
        rng: Source of permutations, dropped edges and masked features.
        device: Where rows are handed out.
    """

    def __init__(
        self,
        adjacency: sp.csr_array,
        x: NDArray[np.float32],
        num_hops: int,
        *,
        self_weight: float,
        contrast: Contrast,
        refresh_every: int,
        rng: np.random.Generator,
        device: str,
    ) -> None:
        self.adjacency, self.num_hops, self.self_weight = adjacency, num_hops, self_weight
        self.contrast, self.refresh_every, self.device = contrast, refresh_every, device
        self.entropy, self.round = int(rng.integers(1 << 62)), -1
        self.hops = hop_features(adjacency, x, num_hops, self_weight=self_weight)
        self.copies: list[NDArray[np.float32]] = []

    @property
    def num_nodes(self) -> int:
        """The number of nodes n."""
        return int(self.hops.shape[1])

    def rows(self, nodes: Tensor) -> Tensor:
        """Hop features of some nodes, of shape (L + 1, len(nodes), r)."""
        return self._gather(self.hops, nodes)

    def corrupted_rows(self, nodes: Tensor, copy: int) -> Tensor:
        """The same of a changed copy of the graph."""
        return self._gather(self.copies[copy], nodes)

    def refresh(self, step: int) -> None:
        """Make the copies anew if it is time. They depend on the step alone, so a resumed run has the same."""
        if step // self.refresh_every == self.round:
            return
        self.round = step // self.refresh_every
        rng = np.random.default_rng([self.entropy, self.round])
        if self.contrast == "dgi":
            corrupted = self.hops[0][rng.permutation(self.num_nodes)]
            self.copies = [self._propagated(self.adjacency, corrupted)]
        elif self.contrast == "grace":
            self.copies = [self._augmented(rng) for _ in range(2)]

    def _augmented(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """A view of GRACE: some edges dropped, some feature columns masked."""
        upper = sp.triu(self.adjacency, format="coo")
        kept = rng.random(upper.nnz) >= GRACE_EDGE_DROP
        row, column = upper.row[kept], upper.col[kept]
        half = sp.coo_array((upper.data[kept], (row, column)), shape=upper.shape)
        mask = np.asarray(rng.random(self.hops.shape[2]) >= GRACE_FEATURE_MASK, dtype=np.float32)
        return self._propagated(sp.csr_array(half + half.T), self.hops[0] * mask)

    def _propagated(self, adjacency: sp.csr_array, x: NDArray[np.float32]) -> NDArray[np.float32]:
        return hop_features(adjacency, x, self.num_hops, self_weight=self.self_weight)

    def _gather(self, hops: NDArray[np.float32], nodes: Tensor) -> Tensor:
        if len(nodes) == self.num_nodes and self.device == "cpu":
            return torch.from_numpy(hops)
        return torch.from_numpy(hops[:, nodes.cpu().numpy()]).to(self.device)
