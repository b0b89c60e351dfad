"""The count of one-way entries equals the one that the transpose gives."""

import numpy as np
import pytest
import scipy.sparse as sp

from degem.graph_checks import count_loops_and_one_way


@pytest.mark.parametrize("seed", range(5))
def test_counts_equal_those_of_the_transpose(seed: int) -> None:
    dense = np.random.default_rng(seed).random((30, 30)) < 0.1
    expected = int(np.trace(dense)), int((dense & ~dense.T).sum())
    assert count_loops_and_one_way(sp.csr_array(dense)) == expected


def test_symmetric_and_empty_patterns_have_none() -> None:
    half = np.triu(np.random.default_rng(0).random((40, 40)) < 0.2, 1)
    assert count_loops_and_one_way(sp.csr_array(half | half.T)) == (0, 0)
    assert count_loops_and_one_way(sp.csr_array((3, 3))) == (0, 0)


def test_one_lost_entry_is_seen() -> None:
    ring = np.roll(np.eye(9), 1, axis=1)
    ring = ring + ring.T
    ring[4, 5] = 0
    assert count_loops_and_one_way(sp.csr_array(ring)) == (0, 1)
