"""Heads on latents: energies with their gradients in closed form, a critic, a classifier."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from degem.ops.density import Mixture
from degem.ops.langevin import LangevinSettings, langevin_along

NUM_WAVES, BANDWIDTH = 128, 2.0


class MLPEnergy(nn.Module):
    r"""A two-layer energy head :math:`f(h, s) = w^\top \mathrm{ReLU}(W [h \| \rho s] + b) + b'`.

    Arguments:
        latent_dim: The size :math:`d` of the latent.
        hidden_dim: The width of the hidden layer.
        condition_weight: The weight :math:`\rho` of the summary; 0 leaves it out (no conditional energy).
        batch_norm: BatchNorm after the ReLU, as the authors' release has it: energies are then taken in training mode,
            chains move in evaluation mode.
        dropout: The dropout probability after that.

    Example:
        >>> MLPEnergy(8)(torch.randn(5, 8), torch.randn(8)).shape
        torch.Size([5])
    """

    def __init__(
        self,
        latent_dim: int,
        hidden_dim: int = 64,
        *,
        condition_weight: float = 1.0,
        batch_norm: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.condition_weight, self.dropout = condition_weight, dropout
        self.hidden = nn.Linear(latent_dim * (2 if condition_weight else 1), hidden_dim)
        self.norm = nn.BatchNorm1d(hidden_dim) if batch_norm else None
        self.out = nn.Linear(hidden_dim, 1)

    def forward(self, latents: Tensor, summary: Tensor) -> Tensor:
        """Energies of shape (n,)."""
        active = F.relu(self._hidden(latents, summary))
        if self.norm is not None:
            active = self.norm(active)
        energies: Tensor = self.out(F.dropout(active, self.dropout, self.training)).squeeze(1)
        return energies

    @torch.no_grad()
    def gradient(self, latents: Tensor, summary: Tensor) -> Tensor:
        r"""The gradient :math:`\nabla_h f = W_h^\top (w \odot 1[z > 0])` in evaluation mode: two small products."""
        active = self._hidden(latents, summary) > 0
        return (active * self._slope()) @ self.hidden.weight[:, : latents.shape[1]]

    @torch.no_grad()
    def sample(
        self, positions: Tensor, summary: Tensor, settings: LangevinSettings, generator: torch.Generator
    ) -> Tensor:
        r"""Chains moved :math:`K` Langevin steps in evaluation mode.

        The energy changes only along the rows of :math:`W_h`, so chains walk in that space of 64 dimensions, not of
        :math:`d`: see :func:`~degem.ops.langevin.langevin_along`.
        """
        dim = positions.shape[1]
        basis, mixing = torch.linalg.qr(self.hidden.weight[:, :dim].T)  # z = mixingᵀ u + bias with u = basisᵀ h
        bias, pull = self._bias(summary, dim), torch.mul(mixing, self._slope()).T.contiguous()

        def gradient(u: Tensor) -> Tensor:
            hidden = torch.addmm(bias, u, mixing)
            torch.gt(hidden, 0, out=hidden)
            return torch.mm(hidden, pull)

        return langevin_along(basis, positions, gradient, settings, generator)

    def _hidden(self, latents: Tensor, summary: Tensor) -> Tensor:
        dim = latents.shape[1]
        return F.linear(latents, self.hidden.weight[:, :dim], self._bias(summary, dim))

    def _bias(self, summary: Tensor, dim: int) -> Tensor:
        """The bias of the hidden layer with the part that the summary adds, the same for every latent."""
        bias: Tensor = self.hidden.bias
        return bias + self.condition_weight * (self.hidden.weight[:, dim:] @ summary) if self.condition_weight else bias

    def _slope(self) -> Tensor:
        """The weight of each active hidden unit, with BatchNorm in evaluation mode folded in."""
        slope: Tensor = self.out.weight[0]
        if self.norm is None:
            return slope
        variance = torch.as_tensor(self.norm.running_var)
        return slope * self.norm.weight / torch.sqrt(variance + self.norm.eps)


class Discriminator(nn.Module):
    r"""The bilinear critic of Deep Graph Infomax: logits :math:`h^\top W s + b`.

    Arguments:
        latent_dim: The size :math:`d` of the latent.
        bias: Whether there is a bias :math:`b`, as the authors' release has.

    Example:
        >>> Discriminator(8)(torch.randn(5, 8), torch.randn(8)).shape
        torch.Size([5])
    """

    def __init__(self, latent_dim: int, *, bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(latent_dim, latent_dim))
        self.bias = nn.Parameter(torch.zeros(1)) if bias else None
        nn.init.xavier_uniform_(self.weight)

    def forward(self, latents: Tensor, summary: Tensor) -> Tensor:
        """Logits of shape (n,)."""
        logits = latents @ (self.weight @ summary)
        return logits if self.bias is None else logits + self.bias


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


class WaveClassifier(nn.Module):
    r"""Logits :math:`W \sqrt{2/m}\,\cos(\Omega z / h + \varphi) + b`: logistic regression under a Gaussian kernel.

    The random waves stand for a kernel of bandwidth :math:`h` (Rahimi & Recht, *Random Features for Large-Scale Kernel
    Machines*, NeurIPS 2007). They are bounded, so a point far from all others cannot be ever surer of its class.

    Arguments:
        in_dim: The number of columns of :math:`z`.
        num_classes: The number of classes C.
        num_waves: The number of waves :math:`m`.
        bandwidth: The bandwidth :math:`h`.

    Example:
        >>> WaveClassifier(8, 3)(torch.zeros(5, 8)).shape
        torch.Size([5, 3])
    """

    frequency: Tensor
    phase: Tensor

    def __init__(
        self, in_dim: int, num_classes: int, *, num_waves: int = NUM_WAVES, bandwidth: float = BANDWIDTH
    ) -> None:
        super().__init__()
        self.register_buffer("frequency", torch.randn(in_dim, num_waves) / bandwidth)
        self.register_buffer("phase", 2 * math.pi * torch.rand(num_waves))
        self.linear = nn.Linear(num_waves, num_classes)

    def waves(self, points: Tensor) -> Tensor:
        """The waves at points of shape (n, in_dim), of shape (n, m)."""
        scale = math.sqrt(2 / len(self.phase))
        return scale * torch.addmm(self.phase, points, self.frequency).cos_()

    def forward(self, points: Tensor) -> Tensor:
        """Logits of shape (n, C)."""
        logits: Tensor = self.linear(self.waves(points))
        return logits
