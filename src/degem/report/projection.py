"""A flat picture of latents that live in many dimensions."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from degem.extras import needs_extra

Projection = Literal["pca", "umap"]


def project(latents: NDArray[np.float32], kind: Projection, seed: int) -> NDArray[np.floating[Any]]:
    """Two coordinates a row, of shape (n, 2).

    Arguments:
        latents: The latents, of shape (n, d).
        kind: ``pca``, or ``umap`` where umap-learn is installed.
        seed: Seed of UMAP.

    Example:
        >>> project(np.eye(4, dtype=np.float32), "pca", seed=0).shape
        (4, 2)
    """
    if kind == "umap":
        with needs_extra("umap", "the UMAP map (the PCA map does not)"):
            from umap import UMAP

        return np.asarray(UMAP(n_components=2, random_state=seed).fit_transform(latents))
    padded = np.pad(latents, ((0, max(0, 2 - len(latents))), (0, max(0, 2 - latents.shape[1]))))
    return np.asarray(PCA(n_components=2, svd_solver="covariance_eigh").fit_transform(padded)[: len(latents)])
