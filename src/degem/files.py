"""Files written whole or not at all, and only regular files of a known size read."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from degem.errors import DegemError
from degem.ops.mapped import available_mib

STAGING = ".degem-staging-"
ABANDONED = 60.0  # seconds after which a staging folder that nobody holds is nobody's
SHARE = 0.5  # of the free memory: what one file may take


@contextlib.contextmanager
def replaced(path: Path, *, follow_link: bool = False) -> Iterator[BinaryIO]:
    """A fresh file to write in the place of ``path``, put there by one rename when all went well.

    It is made exclusively in a private folder beside ``path``, so nothing that lies there already is written to, and
    flushed to the disk before the rename. A file that is replaced gives its mode to the new one. What killed writers
    left in that folder is removed first.

    Arguments:
        path: The file to replace.
        follow_link: Whether a link at ``path`` stays, its target being replaced; else the link itself is replaced.

    Example:
        >>> folder = Path(tempfile.mkdtemp())
        >>> with replaced(folder / "a.txt") as file:
        ...     _ = file.write(b"all of it")
        >>> [found.name for found in folder.iterdir()]
        ['a.txt']
    """
    target = Path(os.path.realpath(path)) if follow_link else path
    staging: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = _mode_to_keep(target)
        sweep(target.parent)
        staging, handle = _staged(target.parent)
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
            (staging / "file").replace(target)
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = "the disk is full: make space, or choose another place, and write it again"
        raise DegemError(f"{path} cannot be written: {reason}") from None
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)


def write_text(path: str | Path, text: str) -> None:
    r"""Write a text file; a crash leaves the old one. A lone surrogate becomes the escape ``\udc80``, as in JSON."""
    with replaced(Path(path), follow_link=True) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def _mode_to_keep(target: Path) -> int | None:
    """The permissions of the file that is replaced; anything but a file or a link is left alone."""
    try:
        old = target.lstat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(old):
        return None
    if not stat.S_ISREG(old):
        raise OSError(errno.EINVAL, "what is there is not a regular file")
    return stat.S_IMODE(old) & 0o777


def _staged(folder: Path) -> tuple[Path, int]:
    """A private folder with a fresh file in it, locked as long as it is open: see :func:`sweep`."""
    while True:
        staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=folder))
        handle = os.open(staging / "file", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_nlink:
                return staging, handle
        os.close(handle)  # taken for abandoned by a sweep in this very moment


def sweep(folder: Path, *, abandoned: float = ABANDONED) -> None:
    """Remove what killed writers left in a folder: a living one holds a lock on its file.

    Arguments:
        folder: The folder.
        abandoned: The age in seconds from which a folder counts; 0 where no other writer can be at work.
    """
    for left in folder.glob(f"{STAGING}*"):
        with contextlib.suppress(OSError):
            if left.is_symlink() or time.time() - left.stat().st_mtime < abandoned:
                continue
            with contextlib.suppress(FileNotFoundError), (left / "file").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # else a BlockingIOError: somebody writes it
            shutil.rmtree(left, ignore_errors=True)


def opened(path: Path) -> BufferedReader:
    """A regular file, open to be read; a pipe, a device or a folder is an OSError and is never waited for."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return file


def size_of(file: BufferedReader) -> int:
    """The bytes of an open file."""
    return os.fstat(file.fileno()).st_size


def read_regular(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most ``limit`` bytes; anything else is an OSError."""
    with opened(path) as file:
        if size_of(file) > limit:
            raise OSError(errno.EFBIG, f"it has {size_of(file):,} bytes, more than {limit:,}", str(path))
        return file.read(limit + 1)


def memory_limit() -> int:
    """The bytes that reading one file may take: half of what is free, or ``$DEGEM_MAX_READ_MIB``.

    Example:
        >>> memory_limit() > 0
        True
    """
    chosen = os.environ.get("DEGEM_MAX_READ_MIB", "")
    return int(float(chosen) * 2**20) if chosen.isdigit() else int(SHARE * available_mib() * 2**20)
