"""The one training loop: steps, history, progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch
from torch import nn

from degem.checkpoint import Checkpoints, Part


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


_LISTENER: ContextVar[OnProgress] = ContextVar("listener", default=silent)


@contextmanager
def reporting_to(on_progress: OnProgress) -> Iterator[None]:
    """Inside, :func:`report` tells this listener: work deep down need not be handed one.

    Example:
        >>> with reporting_to(lambda progress: print(progress.phase)):
        ...     report(Progress("propagate", 1, 10))
        propagate
    """
    before = _LISTENER.set(on_progress)
    try:
        yield
    finally:
        _LISTENER.reset(before)


def report(progress: Progress) -> None:
    """Tell whoever listens where the work stands."""
    _LISTENER.get()(progress)


def train(
    step: Callable[[int], Mapping[str, float]],
    num_steps: int,
    *,
    on_progress: OnProgress = silent,
    phase: str = "train",
    rows_per_step: int = 0,
    checkpoints: Checkpoints | None = None,
    parts: Mapping[str, Part] | None = None,
) -> History:
    """Call ``step(0) … step(num_steps − 1)`` and keep what each returns.

    With ``checkpoints`` a run that was interrupted goes on after its last checkpoint, and ends as if it had not been.

    Arguments:
        step: Does one optimisation step and returns its losses by name.
        num_steps: How many to do.
        on_progress: Told after each step.
        phase: The word shown for this loop.
        rows_per_step: Rows each step works on, for a rate.
        checkpoints: Where checkpoints are written and resumed from, under the name of the phase.
        parts: Everything that ``step`` changes: modules, optimisers, generators, tensors; PyTorch's global generator
            is kept too.

    Example:
        >>> train(lambda i: {"loss": 1.0 / (i + 1)}, 2)["loss"]
        [1.0, 0.5]
    """
    parts = parts or {}
    done, history = checkpoints.restore(phase, parts) if checkpoints is not None else (0, {})
    start = time.perf_counter() - (history["seconds"][-1] if done else 0.0)
    for index in range(done, num_steps):
        metrics = step(index)
        for name, value in metrics.items():
            history.setdefault(name, []).append(float(value))
        history.setdefault("seconds", []).append(time.perf_counter() - start)
        if checkpoints is not None and checkpoints.due():
            checkpoints.save(phase, index + 1, parts, history)
        on_progress(Progress(phase, index + 1, num_steps, metrics, rows_per_step * (index + 1)))
    return history


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch computes on one thread inside the block: handing small tensors out takes longer than their work.

    Example:
        >>> with one_thread():
        ...     torch.get_num_threads()
        1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
