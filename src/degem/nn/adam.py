"""Adam without the optimiser class of PyTorch, whose first use in a process imports the compiler: seconds."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.adam import adam


class Adam(nn.Module):
    """Adam (Kingma & Ba 2015) by PyTorch's fused kernel; its steps equal those of ``torch.optim.Adam(fused=True)``.

    Its state are buffers, so a checkpoint keeps it as it keeps any module.

    Arguments:
        trained: The parameters to train, in place.
        lr: The learning rate.
        weight_decay: The weight of the L2 penalty.

    Example:
        >>> point = nn.Parameter(torch.tensor([3.0]))
        >>> optimizer = Adam([point], lr=1.0)
        >>> point.square().sum().backward()
        >>> optimizer.step()
        >>> point.item()
        2.0
    """

    def __init__(self, trained: Iterable[Tensor], *, lr: float, weight_decay: float = 0.0) -> None:
        super().__init__()
        self.trained, self.lr, self.weight_decay = list(trained), lr, weight_decay
        self._state = {
            "mean": [torch.zeros_like(parameter) for parameter in self.trained],
            "square": [torch.zeros_like(parameter) for parameter in self.trained],
            "steps": [torch.zeros((), device=parameter.device) for parameter in self.trained],
        }
        for name, tensors in self._state.items():
            for index, tensor in enumerate(tensors):
                self.register_buffer(f"{name} {index}", tensor)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for parameter in self.trained:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step along the gradients; a parameter without one stays."""
        moved = [index for index, parameter in enumerate(self.trained) if parameter.grad is not None]

        def of(name: str) -> list[Tensor]:
            return [self._state[name][index] for index in moved]

        adam(
            [self.trained[index] for index in moved],
            [gradient for index in moved if (gradient := self.trained[index].grad) is not None],
            of("mean"),
            of("square"),
            [],
            of("steps"),
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.lr,
            weight_decay=self.weight_decay,
            eps=1e-8,
            maximize=False,
        )
