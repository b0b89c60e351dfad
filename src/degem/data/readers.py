"""Readers of public datasets: PyG's and OGB's own where they work, plain NumPy where they would unpickle.

A reader is a function from a root folder (in the layout of PyG's and OGB's loaders) to a Graph.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.data.arrays import read_npz
from degem.data.demo import digits_graph
from degem.errors import GraphNotice
from degem.extras import needs_extra
from degem.graph import Graph
from degem.index_checks import check_sparse, csr_from_parts
from degem.ops.structural import structural_features

Reader = Callable[[Path], Graph]
SPARSE_SHARE = 0.25  # below this share of non-zeros, CSR takes less memory and time than a dense array


def pyg(loader: str, folder: str, name: str | None = None, **options: Any) -> Reader:
    """A reader that runs a loader of ``torch_geometric.datasets``; it processes, and may download, below its root."""

    def read(root: Path) -> Graph:
        from torch_geometric import datasets

        arguments = options if name is None else {"name": name, **options}
        data = getattr(datasets, loader)(root=str(root / folder), **arguments)[0]
        masks = {part: getattr(data, f"{part}_mask", None) for part in ("train", "val", "test")}
        return _graph(
            data.x.numpy(),
            data.edge_index.numpy(),
            data.y.numpy(),
            masks={part: mask.numpy() for part, mask in masks.items() if mask is not None and mask.ndim == 1},
        )

    return read


def digits(root: Path) -> Graph:
    """Scikit-learn's digits, joined to their nearest neighbours, with all ten classes; no file is read."""
    graph = digits_graph()
    return graph.replace(labels=graph.columns["true_class"], masks={}, columns={})


def twitch(country: str) -> Reader:
    """A reader of one MUSAE graph: multi-hot features, not the 128-d ones of PyG's files, which are gone.

    PyG's own loader would allow pickled arrays in the file; none are needed.
    """

    def read(root: Path) -> Graph:
        raw = read_npz(root / "Twitch" / country / "raw" / f"{country}.npz")
        return _graph(raw["features"], raw["edges"].T, raw["target"])

    return read


def heterophilous(name: str) -> Reader:
    """A reader of one archive in the layout of Platonov et al. 2023; PyG's class knows no filtered graphs."""

    def read(root: Path) -> Graph:
        raw = read_npz(root / "HeterophilousGraph" / name / "raw" / f"{name}.npz")
        return _graph(raw["node_features"], raw["edges"].T, raw["node_labels"])

    return read


def attributed(loader: str, name: str, file: str) -> Reader:
    """A reader of one archive of Shchur et al. 2018: CSR parts of attributes, taken as 0/1, and of the adjacency.

    PyG's own loader would hand them to SciPy unchecked; it only downloads.
    """

    def read(root: Path) -> Graph:
        path = root / loader / name / "raw" / file
        if not path.is_file():
            from torch_geometric import datasets

            getattr(datasets, loader)(root=str(root / loader), name=name)
        raw = read_npz(path)
        features, adjacency = (
            csr_from_parts(
                part,
                raw[f"{part}_data"],
                raw[f"{part}_indices"],
                raw[f"{part}_indptr"],
                (int(raw[f"{part}_shape"][0]), int(raw[f"{part}_shape"][1])),
            )
            for part in ("attr", "adj")
        )
        return _graph((features.toarray() > 0).astype(np.float32), _pairs(adjacency), raw["labels"])

    return read


def arxiv(root: Path) -> Graph:
    """ogbn-arxiv by OGB's reader of its raw CSV files; OGB's dataset class unpickles, which current PyTorch refuses."""
    raw = _ogb_raw(root)
    if raw["node_feat"] is None:
        raise FileNotFoundError("node-feat.csv.gz")
    return _graph(raw["node_feat"], raw["edge_index"], raw["labels"], columns={"year": raw["year"]})


def arxiv_structural(root: Path) -> Graph:
    """The edges, labels and years of ogbn-arxiv with structural features, for machines without its real ones."""
    raw = _ogb_raw(root)
    bare = _graph(np.ones((len(raw["labels"]), 1)), raw["edge_index"], raw["labels"], columns={"year": raw["year"]})
    return bare.replace(features=structural_features(bare.adjacency))


def citation(name: str) -> Reader:
    """A reader of one citation network of Shen et al. 2020; papers of several classes are unlabelled."""

    def read(root: Path) -> Graph:
        raw = _mat(root / "Citation" / "raw" / f"{name}.mat")
        groups = np.asarray(raw["group"], dtype=np.int64)
        labels = np.where(groups.sum(axis=1) == 1, groups.argmax(axis=1), -1)
        return _graph(raw["attrb"], _pairs(raw["network"]), labels)

    return read


def amazon_fraud(root: Path) -> Graph:
    """Amazon's accounts (Dou et al. 2020): no classes to learn, and the truth in the column ``is_fraud``."""
    raw = _mat(root / "AmazonFraud" / "raw" / "Amazon.mat")
    is_fraud = np.asarray(raw["Label"]).ravel() == 1
    nobody = np.full(len(is_fraud), -1)
    return _graph(raw["Attributes"].toarray(), _pairs(raw["Network"]), nobody, columns={"is_fraud": is_fraud})


def _mat(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat  # slow to load, and two readers need it

    arrays: dict[str, Any] = loadmat(path)
    for name, value in arrays.items():
        if sp.issparse(value):
            check_sparse(name, value)
    return arrays


def _pairs(adjacency: Any) -> NDArray[Any]:
    return np.stack(sp.coo_array(adjacency).coords, axis=1)


def _ogb_raw(root: Path) -> dict[str, Any]:
    with needs_extra("bench", "reading ogbn-arxiv"):
        from ogb.io.read_graph_raw import read_csv_graph_raw
    import pandas as pd

    folder = root / "ogbn_arxiv" / "raw"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        graph = read_csv_graph_raw(str(folder), additional_node_files=["node_year"])[0]
    labels = pd.read_csv(folder / "node-label.csv.gz", header=None)[0].to_numpy(dtype=np.int64)
    return {
        "node_feat": graph["node_feat"],
        "edge_index": graph["edge_index"],
        "labels": labels,
        "year": graph["node_year"].reshape(-1),
    }


def _graph(features: Any, edges: NDArray[Any], labels: NDArray[Any], **parts: Any) -> Graph:
    """A Graph whose features are CSR where that pays; the usual notices on tidied edges say nothing new here."""
    dense = np.asarray(features)
    sparse = np.count_nonzero(dense) < SPARSE_SHARE * dense.size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphNotice)
        return Graph.from_arrays(
            features=sp.csr_array(dense, dtype=np.float32) if sparse else dense, edges=edges, labels=labels, **parts
        )
