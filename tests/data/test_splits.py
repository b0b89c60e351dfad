import numpy as np

from degem.data.splits import keep_labels, random_split


def test_a_split_covers_the_nodes_once_and_follows_its_seed() -> None:
    nodes = np.arange(100) % 2 == 0
    split = random_split(nodes, seed=3)
    np.testing.assert_array_equal(sum(part.astype(int) for part in split.values()), nodes.astype(int))
    assert [int(part.sum()) for part in split.values()] == [5, 5, 40]
    np.testing.assert_array_equal(split["train"], random_split(nodes, seed=3)["train"])
    assert (split["train"] != random_split(nodes, seed=4)["train"]).any()


def test_every_class_keeps_a_label() -> None:
    labels = np.array([0] * 20 + [1] * 3 + [2])
    train = np.ones(24, dtype=np.bool_)
    kept = keep_labels(train, labels, 0.1, seed=0)
    np.testing.assert_array_equal(np.bincount(labels[kept]), [2, 1, 1])
    assert not (kept & ~train).any()
