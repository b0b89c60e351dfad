"""What a fit depends on, so that a checkpoint is only ever resumed by the fit that wrote it."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from degem import parameters
from degem.detectors.split import TrainingSet

SAMPLED_ROWS = 1 << 12


def fit_key(method: Any, training: TrainingSet) -> str:
    """A fingerprint of a detector's name and parameters and of its training set.

    Of the features and edges it takes the sizes, the degrees and some rows spread over the graph: enough to tell two
    graphs apart, and quick on one that is larger than memory.

    Arguments:
        method: The detector.
        training: What it is to learn from.
    """
    graph = training.graph
    rows = np.unique(np.linspace(0, graph.num_nodes - 1, SAMPLED_ROWS, dtype=np.int64))
    features = graph.features[rows]
    digest = hashlib.sha256(repr((method.name, parameters.values(method), torch.__version__)).encode())
    digest.update(repr((graph.features.shape, graph.adjacency.nnz)).encode())
    for array in (
        features.toarray() if sp.issparse(features) else features,
        graph.adjacency[rows].indices,
        graph.adjacency.indptr,
        graph.labels,
        training.nodes,
    ):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
