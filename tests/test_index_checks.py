"""Index arrays that point outside are refused before compiled code follows them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from degem import Graph
from degem.errors import GraphError

BAD_INDPTR = [[0, 100_000, 0], [0, 5, 4], [1, 2, 4], [0, -3, 4], [0, 2, 5], [0, 2, 3]]


def forged(kind, indptr, indices=(0, 1, 0, 1)):
    """A matrix whose index arrays are put in after SciPy's own checks."""
    matrix = kind(np.ones((2, 2)))
    matrix.indptr, matrix.indices = np.array(indptr), np.array(indices)
    return matrix


@pytest.mark.parametrize("indptr", BAD_INDPTR)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.bsr_array])
def test_bad_indptr(kind, indptr):
    with pytest.raises(GraphError, match="not a valid CSR"):
        Graph.from_arrays(features=forged(kind, indptr), edges=[(0, 1)])
    with pytest.raises(GraphError, match="not a valid CSR"):
        Graph.from_arrays(adjacency=forged(kind, indptr), features=np.eye(2))


@pytest.mark.parametrize("indices", [[0, 1, 0, 2], [0, 1, 0, -1], [0, 1, 0, 10**9]])
def test_bad_indices(indices):
    matrix = forged(sp.csr_array, [0, 2, 4], indices)
    with pytest.raises(GraphError, match="indices lie outside"):
        Graph.from_arrays(features=matrix, edges=[(0, 1)])
    with pytest.raises(GraphError, match="indices lie outside"):
        Graph.from_arrays(adjacency=matrix, features=np.eye(2))


def test_bad_coordinates():
    matrix = sp.coo_array(np.eye(2))
    matrix.coords = (np.array([0, 7_000_000]), np.array([0, 1]))
    with pytest.raises(GraphError, match="not a valid COO"):
        Graph.from_arrays(features=matrix, edges=[(0, 1)])


def test_every_format_of_scipy_gives_the_same_graph():
    dense = np.array([[0.0, 2.0], [3.0, 4.0]])
    for form in ("csr", "csc", "bsr", "coo", "dia", "lil", "dok"):
        graph = Graph.from_arrays(features=sp.coo_array(dense).asformat(form), edges=[(0, 1)])
        np.testing.assert_array_equal(graph.features.toarray(), dense)


def test_an_archive_that_corrupted_the_heap_is_an_error(tmp_path: Path):
    np.savez(
        tmp_path / "g.npz",
        edges=np.array([[0, 1]]),
        features_data=np.ones(4, dtype=np.float32),
        features_indices=np.array([0, 1, 0, 1], dtype=np.int32),
        features_indptr=np.array([0, 100_000, 0], dtype=np.int32),
        features_shape=np.array([2, 2]),
    )
    code = (
        "import sys, degem\ntry:\n    degem.read_graph(sys.argv[1])\nexcept degem.errors.GraphError:\n    sys.exit(7)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "g.npz")], check=False).returncode == 7


def test_tensors_that_are_no_arrays():
    edges = torch.tensor([[0], [1]])
    bad = torch.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 1], torch.ones(4), (2, 2))
    bad.col_indices()[3] = 10_000_000
    for x in (bad, torch.ones(2, 2, device="meta"), torch.ones(2, 2, dtype=torch.complex64)):
        with pytest.raises(GraphError):
            Graph.from_pyg(Data(x=x, edge_index=edges, num_nodes=2))
    for x in (torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, dtype=torch.bfloat16)):
        assert Graph.from_pyg(Data(x=x, edge_index=edges, y=torch.ones(2, requires_grad=True))).num_nodes == 2


def test_one_edge_does_not_make_a_billion_nodes():
    with pytest.raises(GraphError, match="give num_nodes"):
        Graph.from_arrays(edges=[[0, 3 * 10**8]])
