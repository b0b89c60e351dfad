"""Randomness that comes from a seed and leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Torch's global generator starts from ``seed`` inside the block and is put back after it.

    Layers draw their first weights and their dropout masks from that generator and accept no other.

    Example:
        >>> with seeded(0):
        ...     first = torch.rand(1)
        >>> with seeded(0):
        ...     second = torch.rand(1)
        >>> bool(first == second)
        True
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
