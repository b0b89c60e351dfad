"""The one training loop: steps, history, progress, and randomness that comes from a seed and leaves no trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass(frozen=True)
class Progress:
    """Where a long piece of work stands.

    Arguments:
        phase: What is being done: read, propagate, train, calibrate or score.
        done: Units (steps, rows) finished.
        total: Units in all.
        metrics: Losses of the last step, if any.
        rows: Rows worked on so far, for a rate.
    """

    phase: str
    done: int
    total: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    rows: int = 0


OnProgress = Callable[[Progress], None]
History = dict[str, list[float]]


def silent(_: Progress) -> None:
    """A listener that does nothing."""


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Inside, ``module`` does not drop out; afterwards it is as before: a listener may score a network in training.

    Example:
        >>> dropout = nn.Dropout()
        >>> with evaluating(dropout):
        ...     dropout.training
        False
        >>> dropout.training
        True
    """
    before = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(before)


def train(
    step: Callable[[int], Mapping[str, float]],
    num_steps: int,
    *,
    on_progress: OnProgress = silent,
    phase: str = "train",
    rows_per_step: int = 0,
) -> History:
    """Call ``step(0) … step(num_steps − 1)`` and keep what each returns.

    Arguments:
        step: Does one optimisation step and returns its losses by name.
        num_steps: How many to do.
        on_progress: Told after each step.
        phase: The word shown for this loop.
        rows_per_step: Rows each step works on, for a rate.

    Example:
        >>> train(lambda i: {"loss": 1.0 / (i + 1)}, 2)["loss"]
        [1.0, 0.5]
    """
    history: History = {}
    start = time.perf_counter()
    for index in range(num_steps):
        metrics = step(index)
        for name, value in metrics.items():
            history.setdefault(name, []).append(float(value))
        history.setdefault("seconds", []).append(time.perf_counter() - start)
        on_progress(Progress(phase, index + 1, num_steps, metrics, rows_per_step * (index + 1)))
    return history


def descend(
    optimiser: torch.optim.Optimizer, losses: Mapping[str, torch.Tensor], *, clip: float | None = None
) -> dict[str, float]:
    """One step on the sum of some losses, and what each of them was.

    Arguments:
        optimiser: Steps its own parameters.
        losses: The losses by name.
        clip: The largest norm of the gradient, if there is one.
    """
    optimiser.zero_grad()
    torch.stack(list(losses.values())).sum().backward()
    if clip is not None:
        nn.utils.clip_grad_norm_([value for group in optimiser.param_groups for value in group["params"]], clip)
    optimiser.step()
    return {name: float(loss.detach()) for name, loss in losses.items()}


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
