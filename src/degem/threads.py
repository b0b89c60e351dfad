"""How many threads compute: a sum over several differs in its last digits, and training makes much of those."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numba
from threadpoolctl import threadpool_limits

MAX_KERNEL_THREADS: int = vars(numba.config)["NUMBA_NUM_THREADS"]
_kernel_threads: ContextVar[int | None] = ContextVar("kernel_threads", default=None)


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, PyTorch and BLAS compute on one thread: results do not depend on how many the machine has.

    Kernels whose result does not depend on it, see :func:`kernel_threads`, go on with as many as before.

    Example:
        >>> import torch
        >>> with one_thread():
        ...     torch.get_num_threads()
        1
    """
    import torch  # slow to load, and listing datasets does without

    before = torch.get_num_threads()
    token = _kernel_threads.set(_kernel_threads.get() or before)
    with threadpool_limits(1, user_api="blas"):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
            _kernel_threads.reset(token)


@contextmanager
def kernel_threads() -> Iterator[None]:
    """Inside, numba's kernels use as many threads as PyTorch; both numbers are as before afterwards.

    Both may compute by the same OpenMP library, and numba tells that its own number of threads when it starts.

    Example:
        >>> import torch
        >>> before = numba.get_num_threads()
        >>> with kernel_threads():
        ...     numba.get_num_threads() == min(torch.get_num_threads(), MAX_KERNEL_THREADS)
        True
        >>> numba.get_num_threads() == before
        True
    """
    import torch

    of_torch, of_numba = torch.get_num_threads(), numba.get_num_threads()
    numba.set_num_threads(min(_kernel_threads.get() or of_torch, MAX_KERNEL_THREADS))
    try:
        yield
    finally:
        numba.set_num_threads(of_numba)
        if torch.get_num_threads() != of_torch:
            torch.set_num_threads(of_torch)
