"""An energy head with a Gaussian base, so that energy rises in every direction far from the data."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from degem.ops.density import Mixture


class MixtureEnergy(nn.Module):
    r"""The energy :math:`E(u) = -\log\sum_y \pi_y e^{-\|u - \mu_y\|^2/2} + w^\top \mathrm{SiLU}(Wu + b)`.

    The base, a mixture, is fitted in closed form; the head, the second part, starts at zero and is trained by maximum
    likelihood. With ``hidden_dim`` 0 there is the base alone.

    Arguments:
        dim: The size of a point.
        num_components: The number of classes, at least 1.
        hidden_dim: The width of :math:`f`.

    Example:
        >>> MixtureEnergy(3, 2, 8)(torch.randn(5, 3)).shape
        torch.Size([5])
    """

    mean: Tensor
    whitening: Tensor
    centres: Tensor
    log_prior: Tensor

    def __init__(self, dim: int, num_components: int, hidden_dim: int = 0) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("whitening", torch.eye(dim))
        self.register_buffer("centres", torch.zeros(num_components, dim))
        self.register_buffer("log_prior", torch.zeros(num_components))
        self.hidden = nn.Linear(dim, hidden_dim) if hidden_dim else None
        self.slope = nn.Parameter(torch.zeros(hidden_dim))

    def set_base(self, mixture: Mixture) -> None:
        """Take the base from a fitted mixture; of one that has a single component, every one here is a share."""
        for name in ("mean", "whitening", "centres", "log_prior"):
            getattr(self, name).copy_(torch.from_numpy(getattr(mixture, name)))
        self.log_prior.sub_(math.log(len(self.log_prior) / len(mixture.log_prior)))

    def forward(self, points: Tensor) -> Tensor:
        """Energies of shape (n,) of points that are not whitened yet."""
        u = self.whiten(points)
        return self.base(u) + self.residual(u)

    def whiten(self, points: Tensor) -> Tensor:
        """The points in the space where the base has unit covariance."""
        return (points - self.mean) @ self.whitening

    def base(self, u: Tensor) -> Tensor:
        """The energy of the mixture, of whitened points."""
        logits = self._component_logits(u)
        density = logits[:, 0] if logits.shape[1] == 1 else torch.logsumexp(logits, dim=1)
        return u.square().sum(dim=1) / 2 - density

    def residual(self, u: Tensor) -> Tensor:
        """The trained part :math:`f` of whitened points."""
        if self.hidden is None:
            return u.new_zeros(len(u))
        return F.silu(self.hidden(u)) @ self.slope

    @torch.no_grad()
    def gradient(self, u: Tensor) -> Tensor:
        r"""The gradient :math:`u - \sum_y p(y|u)\mu_y + W^\top(w \odot \mathrm{SiLU}'(Wu+b))`, without autograd."""
        pull = torch.addmm(u, torch.softmax(self._component_logits(u), dim=1), self.centres, alpha=-1)
        if self.hidden is None:
            return pull
        z = self.hidden(u)
        return pull.addmm_(torch.ops.aten.silu_backward(self.slope.expand_as(z), z), self.hidden.weight)

    @torch.no_grad()
    def sample_base(self, count: int, generator: torch.Generator) -> Tensor:
        """Whitened points drawn from the mixture."""
        component = torch.multinomial(self.log_prior.exp(), count, replacement=True, generator=generator)
        noise = torch.randn(count, self.centres.shape[1], generator=generator, device=generator.device)
        return noise.add_(self.centres[component])

    def _component_logits(self, u: Tensor) -> Tensor:
        """The logits of each component but for what they share, half the squared length of u."""
        return torch.addmm(self.log_prior - self.centres.square().sum(dim=1) / 2, u, self.centres.T)
