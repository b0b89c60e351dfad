"""Homophily beyond chance."""

import numpy as np
import pytest
import scipy.sparse as sp

from degem.ops.homophily import excess_homophily, guessed_homophily, labelled_edges


def wired(labels: np.ndarray, same_share: float, num_edges: int, seed: int) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    left = rng.integers(0, len(labels), num_edges)
    same = rng.random(num_edges) < same_share
    right = np.array([rng.choice(np.flatnonzero((labels == labels[i]) == s)) for i, s in zip(left, same, strict=True)])
    half = sp.coo_array((np.ones(num_edges), (left, right)), shape=(len(labels),) * 2).tocsr()
    matrix = sp.csr_array(half + half.T)
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix.data[:] = 1
    return matrix


@pytest.mark.parametrize(("same_share", "low", "high"), [(1.0, 0.97, 1.0), (0.75, 0.6, 0.7), (0.25, 0.0, 0.06)])
def test_follows_the_planted_share(same_share: float, low: float, high: float) -> None:
    labels = np.arange(400) % 4
    assert low <= excess_homophily(wired(labels, same_share, 1500, seed=0), labels) <= high


def test_less_than_chance_is_zero() -> None:
    labels = np.arange(400) % 4
    assert excess_homophily(wired(labels, 0.0, 1500, seed=1), labels) == 0


def test_unknown_labels_and_single_classes_prove_nothing() -> None:
    adjacency = wired(np.arange(40) % 4, 1.0, 100, seed=2)
    assert excess_homophily(adjacency, np.full(40, -1)) == 0
    assert excess_homophily(adjacency, np.zeros(40, dtype=np.int64)) == 0


def test_two_lucky_edges_do_not_make_a_homophilic_graph() -> None:
    adjacency = sp.csr_array(np.kron(np.eye(2), [[0, 1], [1, 0]]))
    assert excess_homophily(adjacency, np.array([0, 0, 1, 1])) < 0.6


def test_few_edges_leave_the_guess_standing_and_many_do_not() -> None:
    labels = np.arange(400) % 4
    none = sp.csr_array((400, 400))
    assert excess_homophily(none, labels, guess=0.7) == pytest.approx(0.7)
    assert excess_homophily(wired(labels, 0.25, 1500, seed=0), labels, guess=1.0) < 0.07


def test_edges_between_labelled_nodes_are_counted_once() -> None:
    labels = np.arange(400) % 4
    adjacency = wired(labels, 0.5, 300, seed=3)
    half = adjacency.tocoo()
    agree = int((labels[half.row] == labels[half.col]).sum()) // 2
    assert labelled_edges(adjacency, labels) == (adjacency.nnz // 2, agree)
    assert labelled_edges(adjacency, np.where(np.arange(400) < 1, labels, -1)) == (0, 0)
    both = np.maximum(half.row, half.col) < 200
    agree = int((labels[half.row] == labels[half.col])[both].sum()) // 2
    assert labelled_edges(adjacency, np.where(np.arange(400) < 200, labels, -1)) == (int(both.sum()) // 2, agree)


@pytest.mark.parametrize(("same_share", "low", "high"), [(1.0, 0.8, 1.0), (0.625, 0.35, 0.65), (0.25, 0.0, 0.1)])
def test_classes_guessed_from_features_follow_the_planted_share(same_share: float, low: float, high: float) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(800) % 4
    points = (np.eye(4)[labels] * 3 + rng.standard_normal((800, 4))).astype(np.float32)
    few = np.where(np.arange(800) < 80, labels, -1)
    assert low <= guessed_homophily(wired(labels, same_share, 4000, seed=1), points, few) <= high


def test_a_graph_without_edges_or_classes_gives_no_guess() -> None:
    points = np.eye(4, dtype=np.float32)
    assert guessed_homophily(sp.csr_array((4, 4)), points, np.arange(4)) == 0
    ring = sp.csr_array(np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1))
    assert guessed_homophily(ring, points, np.full(4, -1)) == 0
