"""Numbers on disk for a while: a file without a name that is written once, in order, and read in pieces."""

from __future__ import annotations

import contextlib
import fcntl
import math
import mmap
import os
import tempfile

import numpy as np
from numpy.typing import NDArray

BUFFER = 1 << 23  # bytes that go to or come from the disk at once
PAGE = mmap.PAGESIZE
NUMBER = 4  # bytes of one


class ScratchFile:
    """A file of float32 that is gone when it is closed or the process ends, in whatever way.

    It lies in the folder for temporary files, which the environment variable ``TMPDIR`` chooses. Where the system
    allows it, its content goes past the system's cache: that would be filled with what is too large for memory, and
    on a virtual machine whose host takes idle memory back, filling it takes longer than writing to disk.

    Example:
        >>> file = ScratchFile()
        >>> file.append(np.arange(6, dtype=np.float32).reshape(3, 2))
        >>> file.finish()
        >>> rows = np.empty((2, 2), dtype=np.float32)
        >>> file.read(2, rows)
        >>> rows
        array([[2., 3.],
               [4., 5.]], dtype=float32)
        >>> file.close()
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="degem-hops-", buffering=0)  # noqa: SIM115 - it lives as long as this
        with contextlib.suppress(OSError, AttributeError):  # a file system that cannot, a system that has no such thing
            fcntl.fcntl(self._file, fcntl.F_SETFL, fcntl.fcntl(self._file, fcntl.F_GETFL) | os.O_DIRECT)
        self._bytes = memoryview(mmap.mmap(-1, BUFFER))  # starts at a page, as going past the cache demands
        self._numbers = np.frombuffer(self._bytes, dtype=np.float32)
        self._filled = 0

    def append(self, values: NDArray[np.float32]) -> None:
        """Write values, of any shape, after those that are there."""
        flat = values.reshape(-1)
        while len(flat):
            some = flat[: len(self._numbers) - self._filled]
            self._numbers[self._filled : self._filled + len(some)] = some
            self._filled += len(some)
            flat = flat[len(some) :]
            if self._filled == len(self._numbers):
                self.finish()

    def finish(self) -> None:
        """Write what is still in the buffer: nothing can be appended afterwards that does not start at a page."""
        left = self._bytes[: PAGE * math.ceil(NUMBER * self._filled / PAGE)]
        while left:
            left = left[self._file.write(left) :]
        self._filled = 0

    def read(self, first: int, out: NDArray[np.float32]) -> None:
        """Fill an array of shape (rows, columns) with the numbers from the place ``first`` on."""
        columns = out.shape[1]
        at_once = (BUFFER - 2 * PAGE) // (NUMBER * columns)  # the piece need not start or end at a page
        for row in range(0, len(out), at_once):
            rows = out[row : row + at_once]
            start, length = NUMBER * (first + row * columns), NUMBER * rows.size
            skipped = start % PAGE
            window = self._bytes[: PAGE * math.ceil((skipped + length) / PAGE)]
            if os.preadv(self._file.fileno(), [window], start - skipped) < skipped + length:
                raise EOFError(f"a scratch file ends before its number {first + row * columns + rows.size}")
            skipped //= NUMBER
            rows[:] = self._numbers[skipped : skipped + rows.size].reshape(rows.shape)

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()
