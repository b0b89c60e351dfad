"""A graph of memory maps is the same graph, and says what is wrong with its files."""

from pathlib import Path

import numpy as np
import pytest

from degem import Graph
from degem.data.archives import read_memmap
from degem.data.files import read_graph
from degem.errors import GraphError


@pytest.fixture
def folder(small_graph: Graph, tmp_path: Path) -> Path:
    np.save(tmp_path / "features.npy", small_graph.features)
    np.save(tmp_path / "indptr.npy", small_graph.adjacency.indptr)
    np.save(tmp_path / "indices.npy", small_graph.adjacency.indices)
    np.save(tmp_path / "labels.npy", small_graph.labels)
    np.save(tmp_path / "mask_train.npy", small_graph.labels == 0)
    return tmp_path


def is_mapped(array: np.ndarray) -> bool:
    base: object = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return True
        base = base.base
    return False


def test_it_is_the_same_graph_and_stays_on_disk(folder: Path, small_graph: Graph) -> None:
    graph = read_graph(folder)
    np.testing.assert_array_equal(graph.features, small_graph.features)
    assert (graph.adjacency != small_graph.adjacency).nnz == 0
    np.testing.assert_array_equal(graph.labels, small_graph.labels)
    np.testing.assert_array_equal(graph.masks["train"], small_graph.labels == 0)
    for part in (graph.features, graph.adjacency.indptr, graph.adjacency.indices, graph.labels, graph.masks["train"]):
        assert is_mapped(part)
    assert graph.adjacency.data.strides == (0,)


def test_subgraphs_and_products_work(folder: Path, small_graph: Graph) -> None:
    graph = read_memmap(folder)
    assert (graph.subgraph(np.arange(50)).adjacency != small_graph.subgraph(np.arange(50)).adjacency).nnz == 0
    x = np.asarray(small_graph.features)
    np.testing.assert_allclose(graph.adjacency @ x, small_graph.adjacency @ x)


def test_faults_name_the_folder(folder: Path) -> None:
    indices = np.load(folder / "indices.npy")
    np.save(folder / "indices.npy", indices[::-1].copy())
    with pytest.raises(GraphError, match=rf"{folder.name}.*adjacency"):
        read_memmap(folder)
    np.save(folder / "indices.npy", indices[:-1])
    with pytest.raises(GraphError, match=r"CSR"):
        read_memmap(folder)
    np.save(folder / "indices.npy", indices.astype(object), allow_pickle=True)
    with pytest.raises(GraphError, match=r"indices\.npy is not a plain"):
        read_memmap(folder)
    (folder / "indices.npy").unlink()
    with pytest.raises(GraphError, match=r"no indices\.npy"):
        read_memmap(folder)


def test_index_arrays_that_point_outside_are_refused(folder: Path) -> None:
    indptr = np.load(folder / "indptr.npy")
    for forged in (np.where(np.arange(len(indptr)) == 3, 10**6, indptr), np.zeros_like(indptr), indptr[::-1].copy()):
        np.save(folder / "indptr.npy", forged.astype(np.int32))
        with pytest.raises(GraphError, match="not a valid CSR"):
            read_memmap(folder)


def test_bytes_behind_an_array_are_refused(folder: Path) -> None:
    with (folder / "features.npy").open("ab") as file:
        file.write(bytes(4))
    with pytest.raises(GraphError, match=r"features\.npy is not a plain"):
        read_memmap(folder)
