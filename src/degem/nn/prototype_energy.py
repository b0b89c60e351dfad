"""The energy of pointing away from every class."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CONCENTRATION = 10.0


class PrototypeEnergy(nn.Module):
    r"""Energies :math:`E(g) = -\log \sum_c \exp(\kappa \cos(g - \mu, m_c))` around class prototypes :math:`m_c`.

    It is that of a mixture of von Mises–Fisher distributions of one concentration :math:`\kappa` (Banerjee et al.,
    *Clustering on the Unit Hypersphere*, JMLR 2005) over directions seen from the centre :math:`\mu`; a prototype is
    the mean direction of its class. A mean needs few labels: where these are rare, it holds longest.

    Arguments:
        dim: The number of columns r.
        num_classes: The number of classes C.

    Example:
        >>> energy = PrototypeEnergy(2, 2)
        >>> points = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]])
        >>> left_out = energy.fit(points, torch.tensor([0, 1, 0]), centre=torch.zeros(2))
        >>> bool(energy(torch.tensor([[-1.0, -1.0]])) > energy(points).max())
        True
    """

    centre: Tensor
    prototypes: Tensor

    def __init__(self, dim: int, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(dim))
        self.register_buffer("prototypes", torch.zeros(num_classes, dim))

    @torch.no_grad()
    def fit(self, points: Tensor, labels: Tensor, centre: Tensor) -> Tensor:
        """Take the prototypes from labelled points.

        Arguments:
            points: The points g, of shape (n, r).
            labels: Their classes; −1 where unknown.
            centre: The centre :math:`\\mu`.

        Returns:
            The energies of the points, each left out of the prototype of its own class.
        """
        self.centre.copy_(centre)
        known = torch.nonzero(labels >= 0).squeeze(1)
        seen, classes = self._seen(points), labels[known]
        sums = torch.zeros_like(self.prototypes).index_add_(0, classes, seen[known])
        self.prototypes.copy_(F.normalize(sums, dim=1, eps=1e-8))
        cosines = seen @ self.prototypes.T
        others = F.normalize(sums[classes] - seen[known], dim=1, eps=1e-8)
        cosines[known, classes] = (seen[known] * others).sum(dim=1)
        return _energy(cosines)

    def forward(self, points: Tensor) -> Tensor:
        """Energies of points of shape (n, r)."""
        seen = points - self.centre
        lengths = torch.linalg.vector_norm(seen, dim=1, keepdim=True).clamp_min(1e-8)
        return _energy((seen @ self.prototypes.T) / lengths)  # fewer numbers to divide than in seen

    def _seen(self, points: Tensor) -> Tensor:
        """Where the points lie as seen from the centre."""
        return F.normalize(points - self.centre, dim=1, eps=1e-8)


def _energy(cosines: Tensor) -> Tensor:
    return -torch.logsumexp(CONCENTRATION * cosines, dim=1)
