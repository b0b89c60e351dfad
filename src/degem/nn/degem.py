"""Modules of DeGEM: the encoder of hop features, the energy of a mixture and its head, and the classifier by waves."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from degem.nn.dropout import dropout
from degem.ops.estimates import Mixture

GAIN, LEAK = 4.0, 0.1  # of the encoder
NUM_WAVES, BANDWIDTH = 128, 2.0


class HopDirectionEncoder(nn.Module):
    r"""The default's encoder, which sees where each hop points, and how long it is, as separate inputs.

    Each hop's direction :math:`X^{(\ell)} / \|X^{(\ell)}\|` is projected to :math:`d`, and so are the standardised
    log-lengths (with log-degree); each projection is scaled to length 4, then ReLU and dropout; all are concatenated
    and mapped to :math:`d`. Lengths and degrees of an OOD node can be far out: this way they cannot drown the rest.

    Arguments:
        in_dim: The number of feature columns :math:`r`.
        num_inputs: The number of hops that are used.
        num_lengths: The number of log-lengths.
        latent_dim: The size :math:`d` of the latent.
        dropout: The dropout probability.
    """

    def __init__(
        self, in_dim: int, num_inputs: int, num_lengths: int, latent_dim: int, *, dropout: float = 0.3
    ) -> None:
        super().__init__()
        self.hop_weight = nn.Parameter(torch.randn(num_inputs, in_dim, latent_dim) / in_dim**0.5)
        self.hop_bias = nn.Parameter(torch.zeros(num_inputs, 1, latent_dim))
        self.lengths = nn.Linear(num_lengths, latent_dim)
        self.fuse = nn.Linear((num_inputs + 1) * latent_dim, latent_dim)
        self.dropout = dropout

    def forward(self, products: Tensor, inverse_norm: Tensor, lengths: Tensor) -> Tensor:
        """Latents of shape (n, d).

        Arguments:
            products: Hop features times ``hop_weight``, of shape (hops, n, d).
            inverse_norm: One over the length of each hop's row, of shape (hops, n, 1).
            lengths: Standardised log-lengths, of shape (n, e).
        """
        last = (0, 0, 0, 0, 0, 1)  # the lengths come after the hops: no bias but their own, and as they are
        active = unit_relu(
            torch.cat([products, self.lengths(lengths)[None]]),
            F.pad(self.hop_bias, last),
            F.pad(inverse_norm, last, value=1.0),
        )
        dropped = dropout(active, self.dropout if self.training else 0.0)
        weight = GAIN * self.fuse.weight  # scaling the weight is cheaper than scaling its input
        return F.leaky_relu(F.linear(dropped.transpose(0, 1).flatten(1), weight, self.fuse.bias), LEAK)


def unit_relu(products: Tensor, bias: Tensor, scale: Tensor | None = None) -> Tensor:
    r"""The hops :math:`\phi(s^{(\ell)} Z^{(\ell)} + b^{(\ell)})`; :math:`\phi` makes rows of unit length, then ReLU.

    Arguments:
        products: The projected hops :math:`Z`, of shape (hops, n, d).
        bias: Their bias :math:`b`, of shape (hops, 1, d).
        scale: A factor :math:`s` for each row, of shape (hops, n, 1); 1 if None.

    Example:
        >>> unit_relu(torch.tensor([[[3.0, 4.0]], [[-1.0, 0.0]]]), torch.zeros(2, 1, 2)).tolist()
        [[[0.6000000238418579, 0.800000011920929]], [[0.0, 0.0]]]
    """
    scaled = products if scale is None else scale * products
    return F.relu(F.normalize(scaled + bias, dim=2))


class MixtureEnergy(nn.Module):
    r"""The energy :math:`E(u) = -\log\sum_y \pi_y e^{-\|u - \mu_y\|^2/2} + w^\top \mathrm{SiLU}(Wu + b)`.

    The base, a mixture, is fitted in closed form; the head, the second part, starts at zero and is trained by maximum
    likelihood. With ``hidden_dim`` 0 there is the base alone.

    Arguments:
        dim: The size of a point.
        num_components: The number of classes, at least 1.
        hidden_dim: The width of :math:`f`.
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
