"""Denoising diffusion of latents: the network that predicts noise, and sampling with it (Ho et al. 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from degem.training import evaluating

FIRST_BETA, LAST_BETA = 1e-4, 0.02


class Diffusion(nn.Module):
    r"""A multilayer perceptron that predicts the noise in a latent, :math:`\epsilon_\theta(x_t, t)`.

    The forward process is :math:`x_t = \sqrt{\bar\alpha_t}\,x_0 + \sqrt{1 - \bar\alpha_t}\,\epsilon` with
    :math:`\beta_t` linear from 1e-4 to 0.02 and :math:`\bar\alpha_t = \prod_{s \le t} (1 - \beta_s)`. The network is
    linear, ReLU, plus an embedding of :math:`t`, batch norm, linear.

    Arguments:
        dim: The dimension of the latents.
        hidden_dim: The width of the hidden layer.
        num_steps: The number of diffusion steps :math:`T`.
    """

    betas: Tensor
    signal: Tensor

    def __init__(self, dim: int, hidden_dim: int, *, num_steps: int) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(hidden_dim, hidden_dim), nn.GELU(), nn.Linear(hidden_dim, hidden_dim))
        self.first, self.last = nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim)
        self.norm = nn.BatchNorm1d(hidden_dim)
        betas = torch.linspace(FIRST_BETA, LAST_BETA, num_steps)
        self.register_buffer("betas", betas, persistent=False)
        self.register_buffer("signal", (1 - betas).cumprod(dim=0), persistent=False)
        self.register_buffer("waves", sinusoids(num_steps, hidden_dim), persistent=False)

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        """The noise in ``x``, of shape (n, dim), at ``steps`` of shape (n,) or a single one."""
        once, places = steps.unique(return_inverse=True)  # there are fewer steps than nodes
        times = self.time(self.get_buffer("waves")[once])[places]
        noise: Tensor = self.last(self.norm(functional.relu(self.first(x)) + times))
        return noise

    def loss(self, latents: Tensor) -> Tensor:
        """The smooth absolute error of the noise predicted at random steps."""
        steps = torch.randint(0, len(self.betas), (len(latents),), device=latents.device)
        noise, signal = torch.randn_like(latents), self.signal[steps][:, None]
        return functional.smooth_l1_loss(self(signal.sqrt() * latents + (1 - signal).sqrt() * noise, steps), noise)

    @torch.no_grad()
    def sample(self, count: int) -> Tensor:
        """Latents drawn by walking all steps back from standard normal ones."""
        x = torch.randn(count, self.first.in_features, device=self.betas.device)
        with evaluating(self):
            for step in reversed(range(len(self.betas))):
                x = self.step_back(x, step)
                if step > 0:
                    variance = self.betas[step] * (1 - self.signal[step - 1]) / (1 - self.signal[step])
                    x = x + variance.sqrt() * torch.randn_like(x)
        return x

    def step_back(self, x: Tensor, step: int) -> Tensor:
        r"""The mean one step before, :math:`(x - \beta_t / \sqrt{1 - \bar\alpha_t}\,\epsilon) / \sqrt{1 - \beta_t}`."""
        beta = self.betas[step]
        noise = self(x, torch.tensor([step], device=x.device))
        mean: Tensor = (x - beta / (1 - self.signal[step]).sqrt() * noise) / (1 - beta).sqrt()
        return mean


def sinusoids(num_steps: int, dim: int) -> Tensor:
    r"""The sines and cosines that stand for the steps :math:`0 \dots T - 1`, of shape (T, dim).

    Example:
        >>> sinusoids(2, 4)
        tensor([[0.0000e+00, 0.0000e+00, 1.0000e+00, 1.0000e+00],
                [8.4147e-01, 1.0000e-04, 5.4030e-01, 1.0000e+00]])
    """
    half = dim // 2
    frequencies = torch.exp(-math.log(10_000) / max(half - 1, 1) * torch.arange(half))
    angles = torch.arange(num_steps)[:, None] * frequencies
    return functional.pad(torch.cat([angles.sin(), angles.cos()], dim=1), (0, dim - 2 * half))
