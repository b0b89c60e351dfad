"""Columns of node values on their way over the graph, hop by hop: one interface, in memory and out of core."""

from __future__ import annotations

from degem.ops.mapped import default_budget
from degem.propagation.memory import InMemory as InMemory
from degem.propagation.out_of_core import OutOfCore as OutOfCore
from degem.propagation.propagator import Columns as Columns
from degem.propagation.propagator import HopBlock as HopBlock
from degem.propagation.propagator import KeptHops as KeptHops
from degem.propagation.propagator import Propagator as Propagator
from degem.training import OnProgress, silent

LITTLE = 1 << 26  # bytes that fit any machine: it is not asked


def choose_propagator(
    num_bytes: int, *, memory_budget: float | None = None, on_progress: OnProgress = silent
) -> Propagator:
    """The propagator for hops of so many bytes: in memory if they fit the budget, else out of core.

    Arguments:
        num_bytes: What the hops that are to be kept take.
        memory_budget: MiB that they may take in memory; default: a quarter of what is free.
        on_progress: Told after each hop.

    Example:
        >>> type(choose_propagator(1 << 20)).__name__
        'InMemory'
        >>> type(choose_propagator(1 << 20, memory_budget=0.5)).__name__
        'OutOfCore'
    """
    if memory_budget is None:
        if num_bytes <= LITTLE:
            return InMemory(on_progress)
        memory_budget = default_budget()
    budget_bytes = 2**20 * memory_budget
    return InMemory(on_progress) if num_bytes <= budget_bytes else OutOfCore(budget_bytes, on_progress)
