"""Rows of features made ready for the encoder, and how rare each is: bags of words, or columns of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from degem.ops.features import Features, dense, row_counts, row_normalize, row_norms, to_tensor

NUM_STATISTICS = 3
BANK, NEIGHBOURS, FLOOR, AT_ONCE = 2048, 10, 1e-3, 4096
MOST = 30.0  # of a value's logarithm: squares of what is larger are no float32
BEYOND_COUNTING = 1e9  # dimensions of a bag of words; a model file holds no infinities


class FeatureRows(nn.Module, ABC):
    """What is learnt of rows of features: how to encode them, and how rare one is among those of the training graph."""

    dimension: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("dimension", torch.tensor(BEYOND_COUNTING))

    @abstractmethod
    def fit(self, sample: Features, rng: np.random.Generator) -> None:
        """Learn from some rows of the training graph."""

    @abstractmethod
    def encode(self, features: Features) -> Features:
        """Rows on the scale of the encoder."""

    @abstractmethod
    def rarity(self, encoded: Tensor) -> Tensor:
        """How rare each encoded row is, of shape (n,)."""

    def statistics(self, encoded: Features) -> NDArray[np.float32]:
        """The length of each encoded row, how many of its features are not zero, and its rarity, of shape (n, 3)."""
        rarity = self.rarity(to_tensor(encoded)).cpu().numpy()
        return np.column_stack([row_norms(encoded)[1], row_counts(encoded), rarity]).astype(np.float32)


class BagOfWords(FeatureRows):
    r"""Rows of unit sum. One is rare as far as its words are: its cross-entropy :math:`-\sum_w x_w \log p_w`.

    :math:`p_w` is the share of the word among those of the training graph, half a word added to each.

    Arguments:
        num_features: The number of words.
    """

    surprise: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.register_buffer("surprise", torch.zeros(num_features))

    def fit(self, sample: Features, rng: np.random.Generator) -> None:
        """Count in how many rows each word is."""
        counts = np.bincount(sample.nonzero()[1], minlength=sample.shape[1]) + 0.5
        self.surprise.copy_(torch.from_numpy(-np.log(counts / counts.sum())))

    def encode(self, features: Features) -> Features:
        """Rows of unit sum."""
        return row_normalize(features)

    def rarity(self, encoded: Tensor) -> Tensor:
        """The cross-entropy of each row."""
        return encoded @ self.surprise.to(encoded.device)


class Table(FeatureRows):
    r"""Columns as :math:`\mathrm{sign}(z)\log(1 + |z|)`, :math:`z = (x - m)/w`: skewed ones lose their long tails.

    :math:`m` is the median of a column and :math:`w` how wide its central 80 % are. A row is rare as far as it lies
    from the others: :math:`\log r_k`, the distance of :math:`z` to the k-th nearest of some training rows (Loftsgaarden
    & Quesenberry 1965). The intrinsic ``dimension`` follows from such distances (Levina & Bickel 2004).

    Arguments:
        num_features: The number of columns.
    """

    median: Tensor
    width: Tensor
    bank: Tensor
    rank: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.register_buffer("median", torch.zeros(num_features))
        self.register_buffer("width", torch.ones(num_features))
        self.register_buffer("bank", torch.zeros(BANK, num_features))
        self.register_buffer("rank", torch.tensor(NEIGHBOURS))

    def fit(self, sample: Features, rng: np.random.Generator) -> None:
        """Take the scale of each column, and keep some rows, each as often as another where there are few."""
        for buffer, values in zip((self.median, self.width), column_scales(sample), strict=True):
            buffer.copy_(torch.from_numpy(values))
        count = sample.shape[0]
        chosen = np.sort(rng.permutation(count)[:BANK])
        points = _unfolded(torch.from_numpy(self.encode(sample[chosen])))
        self.bank.copy_(points[torch.arange(BANK) % len(points)])
        self.rank.fill_(min(NEIGHBOURS, count) * max(BANK // count, 1))  # each stands there so many times
        self.dimension.fill_(intrinsic_dimension(points))

    def encode(self, features: Features) -> NDArray[np.float32]:
        """Columns on one scale."""
        with np.errstate(over="ignore"):
            z = (dense(features) - self.median.cpu().numpy()) / self.width.cpu().numpy()
        return np.asarray(np.sign(z) * np.minimum(np.log1p(np.abs(z)), MOST), dtype=np.float32)

    def rarity(self, encoded: Tensor) -> Tensor:
        """The logarithm of the distance to the k-th nearest row that was kept."""
        rank, bank = min(max(int(self.rank), 1), BANK), self.bank.to(encoded.device)
        parts = _unfolded(encoded).split(AT_ONCE)
        return torch.cat([torch.log(torch.cdist(part, bank).kthvalue(rank, dim=1).values + FLOOR) for part in parts])


def feature_rows(num_features: int, table: bool) -> FeatureRows:
    """What is to be learnt of rows of that many features."""
    return Table(num_features) if table else BagOfWords(num_features)


def column_scales(features: Features) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The median of each column, and how wide its central 80 % are (its standard deviation where that is nothing).

    Example:
        >>> column_scales(np.arange(11.0, dtype=np.float32)[:, None])
        (array([5.], dtype=float32), array([8.], dtype=float32))
    """
    columns = dense(features)
    low, median, high = np.quantile(columns, [0.1, 0.5, 0.9], axis=0)
    width = high - low
    width = np.where(width > 0, width, columns.std(axis=0))
    return median.astype(np.float32), np.where(width > 0, width, 1).astype(np.float32)


def intrinsic_dimension(points: Tensor, neighbours: int = 20) -> float:
    r"""The maximum-likelihood estimate :math:`1 / \overline{\log(r_k / r_j)}` of Levina & Bickel (2004), over points.

    Where distances do not differ, and of a handful of points, it is beyond counting.

    Example:
        >>> line = torch.rand(500, 1, generator=torch.Generator().manual_seed(0)) @ torch.ones(1, 9)
        >>> round(intrinsic_dimension(line))
        1
    """
    if len(points) <= 2 * neighbours:
        return BEYOND_COUNTING
    nearest = torch.cdist(points, points).topk(neighbours + 1, largest=False).values[:, 1:] + 1e-9
    ratios = torch.log(nearest[:, -1:] / nearest[:, :-1])
    return min(1 / ratios.mean().item(), BEYOND_COUNTING) if ratios.any() else BEYOND_COUNTING


def _unfolded(encoded: Tensor) -> Tensor:
    """The columns on their own scale again."""
    return torch.sign(encoded) * torch.expm1(encoded.abs())
