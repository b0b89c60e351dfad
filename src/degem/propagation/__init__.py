"""Columns of node values on their way over the graph, hop by hop: one interface, in memory and out of core."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from degem.ops.mapped import default_budget
from degem.propagation.propagator import Columns as Columns
from degem.propagation.propagator import HopBlock as HopBlock
from degem.propagation.propagator import KeptHops as KeptHops
from degem.propagation.propagator import Propagator as Propagator
from degem.training import OnProgress, silent

MakePropagator = Callable[[OnProgress], Propagator]
_elsewhere: ContextVar[MakePropagator | None] = ContextVar("elsewhere", default=None)
LITTLE = 1 << 26  # bytes that fit any machine: it is not asked


@contextmanager
def propagating_by(make: MakePropagator) -> Iterator[None]:
    """Inside, :func:`choose_propagator` gives an engine's propagator, made by ``make`` for a listener.

    Example:
        >>> with propagating_by(lambda on_progress: Propagator(1)):
        ...     choose_propagator(1 << 20).out_of_core
        True
    """
    token = _elsewhere.set(make)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def choose_propagator(
    num_bytes: int, *, memory_budget: float | None = None, on_progress: OnProgress = silent
) -> Propagator:
    """The propagator for hops of so many bytes: in memory if they fit the budget, else out of core; or an engine's.

    Arguments:
        num_bytes: What the hops that are to be kept take.
        memory_budget: MiB that they may take in memory; default: a quarter of what is free.
        on_progress: Told after each hop.

    Example:
        >>> choose_propagator(1 << 20).out_of_core, choose_propagator(1 << 20, memory_budget=0.5).out_of_core
        (False, True)
    """
    if make := _elsewhere.get():
        return make(on_progress)
    if memory_budget is None:
        memory_budget = math.inf if num_bytes <= LITTLE else default_budget()
    budget_bytes = 2**20 * memory_budget
    return Propagator(math.inf if num_bytes <= budget_bytes else budget_bytes, on_progress)
