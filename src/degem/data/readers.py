"""Readers of public datasets: PyG's and OGB's own where they work, plain NumPy where they would unpickle.

A reader takes a root folder (in the layout of PyG's and OGB's loaders) and gives a Graph.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from degem.data.arrays import read_npz
from degem.data.demo import digits_graph
from degem.errors import GraphError, GraphNotice
from degem.extras import needs_extra
from degem.graph import Graph
from degem.graph_checks import check_sparse, csr_from_parts
from degem.ops.neighbours import structural_features

SPARSE_SHARE = 0.25  # below this share of non-zeros, CSR takes less memory and time than a dense array
PICKLED = "ind."  # Planetoid's files: PyG unpickles them, and a pickle can run any code
SHA256 = {
    "ind.cora.allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "ind.cora.ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "ind.cora.graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "ind.cora.test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    "ind.cora.tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "ind.cora.ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "ind.cora.x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
    "ind.cora.y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
}


def pyg(root: Path, *, loader: str, folder: str, **options: Any) -> Graph:
    """By a loader of ``torch_geometric.datasets``, which processes, and may download, below its root."""
    from torch_geometric import datasets

    data = getattr(datasets, loader)(root=str(root / folder), **options)[0]
    masks = {part: getattr(data, f"{part}_mask", None) for part in ("train", "val", "test")}
    return _graph(
        data.x.numpy(),
        data.edge_index.numpy(),
        data.y.numpy(),
        masks={part: mask.numpy() for part, mask in masks.items() if mask is not None and mask.ndim == 1},
    )


def digits(root: Path) -> Graph:
    """Scikit-learn's digits, joined to their nearest neighbours, with all ten classes; no file is read."""
    graph = digits_graph()
    return graph.replace(labels=graph.columns["true_class"], masks={}, columns={})


def twitch(root: Path, *, country: str) -> Graph:
    """One MUSAE graph: multi-hot features, not the 128-d ones of PyG's files, which are gone.

    PyG's own loader would allow pickled arrays in the file; none are needed.
    """
    raw = read_npz(root / "Twitch" / country / "raw" / f"{country}.npz")
    return _graph(raw["features"], raw["edges"].T, raw["target"])


def heterophilous(root: Path, *, name: str) -> Graph:
    """One archive in the layout of Platonov et al. 2023; PyG's class knows no filtered graphs."""
    raw = read_npz(root / "HeterophilousGraph" / name / "raw" / f"{name}.npz")
    return _graph(raw["node_features"], raw["edges"].T, raw["node_labels"])


def attributed(root: Path, *, loader: str, name: str, file: str) -> Graph:
    """One archive of Shchur et al. 2018: CSR parts of attributes, taken as 0/1, and of the adjacency.

    PyG's own loader would hand them to SciPy unchecked; it only downloads.
    """
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


def citation(root: Path, *, name: str) -> Graph:
    """One citation network of Shen et al. 2020; papers of several classes are unlabelled."""
    raw = _mat(root / "Citation" / "raw" / f"{name}.mat")
    groups = np.asarray(raw["group"], dtype=np.int64)
    labels = np.where(groups.sum(axis=1) == 1, groups.argmax(axis=1), -1)
    return _graph(raw["attrb"], _pairs(raw["network"]), labels)


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


def copy_official(source: Path, target: Path) -> None:
    """Copy a pickled raw file if it is the official one, so that what is checked is what the loader reads.

    Arguments:
        source: The raw file.
        target: Where the loader will read it; must not exist.
    """
    content = source.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256.get(source.name):
        raise GraphError(
            f"{source} is not the official file (its checksum is not known), and its loader would run code from it: "
            "put the official file there"
        )
    with target.open("xb") as file:
        file.write(content)


def is_pickled(name: str) -> bool:
    """Whether the loader of a raw file of this name unpickles it.

    Example:
        >>> is_pickled("ind.cora.x"), is_pickled("DE.npz")
        (True, False)
    """
    return name.startswith(PICKLED)
