"""What is learnt of rows of features: their scale, how rare each is, and how many dimensions they have."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from degem import DeGEM, Graph
from degem.detectors.degem.encoding import BagOfWords, Table, intrinsic_dimension
from degem.metrics import auroc_ood_positive
from degem.ops.features import to_tensor


def test_a_row_of_words_is_as_rare_as_its_words_are() -> None:
    words = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]], dtype=np.float32)
    rows = BagOfWords(3)
    rows.fit(words, np.random.default_rng(0))
    shares = (np.array([4, 2, 1]) + 0.5) / 8.5
    expected = -(words / words.sum(axis=1, keepdims=True)) @ np.log(shares)
    for features in (words, sp.csr_array(words)):
        np.testing.assert_allclose(rows.rarity(to_tensor(rows.encode(features))), expected, rtol=1e-6)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_the_unit_of_a_column_says_nothing(scale: float) -> None:
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((300, 4)).astype(np.float32)
    rarity = []
    for unit in (1.0, scale):
        rows, scaled = Table(4), columns * np.array([1, 1, unit, 1], dtype=np.float32)
        rows.fit(scaled, np.random.default_rng(1))
        rarity.append(rows.rarity(to_tensor(rows.encode(scaled))).numpy())
    np.testing.assert_allclose(rarity[0], rarity[1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dimension", [1, 3, 8])
def test_the_dimension_of_points_in_a_subspace_is_found(dimension: int) -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(2000, dimension, generator=generator) @ torch.randn(dimension, 40, generator=generator)
    assert intrinsic_dimension(points) == pytest.approx(dimension, rel=0.3)


def test_a_handful_of_rows_and_rows_that_are_all_alike_are_fitted() -> None:
    for sample in (np.ones((1, 3)), np.ones((3, 3)), np.ones((100, 3))):
        rows = Table(3)
        rows.fit(sample.astype(np.float32), np.random.default_rng(0))
        assert torch.isfinite(rows.rarity(torch.zeros(2, 3))).all()


def test_an_average_of_two_embeddings_is_found_although_it_lies_near_to_others() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((600, 100)).astype(np.float32)
    ring = np.column_stack([np.arange(600), np.roll(np.arange(600), 1)])
    graph = Graph.from_arrays(features=features, edges=ring)
    mixed = features[rng.permutation(600)] / 2 + features[rng.permutation(600)] / 2
    detector = DeGEM(num_epochs=2).fit(graph)
    own = [detector.score(graph.replace(features=rows)).terms["own"] for rows in (features, mixed)]
    assert auroc_ood_positive(*own) > 0.9
