"""A network that was run elsewhere: its outputs are the features of a wrapped graph."""

from __future__ import annotations

from torch import Tensor, nn


class GivenOutputs(nn.Module):
    """Stands where a trained network does, and gives what was given: see :func:`degem.wrap`.

    Arguments:
        num_logits: How many columns are logits, the first ones; the others are the penultimate layer.

    Example:
        >>> import torch
        >>> [tuple(layer.shape) for layer in GivenOutputs(3).layers(torch.ones(5, 7), torch.eye(5))]
        [(5, 4), (5, 3)]
    """

    def __init__(self, num_logits: int) -> None:
        super().__init__()
        self.num_logits = num_logits

    def layers(self, features: Tensor, adjacency: Tensor) -> list[Tensor]:
        """The penultimate layer, for which logits stand in where it was not given, and the logits."""
        logits, embeddings = features[:, : self.num_logits], features[:, self.num_logits :]
        return [embeddings if embeddings.shape[1] else logits, logits]
