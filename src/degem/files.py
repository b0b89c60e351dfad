"""Files written whole or not at all, and only regular files of a known size read."""

from __future__ import annotations

import contextlib
import errno
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
ABANDONED = 86_400.0  # seconds: no writer is at work on one file for a day
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
        staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=target.parent))
        with (staging / "file").open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            (staging / "file").chmod(mode)
        (staging / "file").replace(target)
    except OSError as error:
        raise not_written(path, error) from None
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)


def not_written(path: Path, error: OSError) -> DegemError:
    """The error for a file that could not be written."""
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        reason = "the disk is full: make space, or choose another place, and write it again"
    return DegemError(f"{path} cannot be written: {reason}")


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


def sweep(folder: Path, *, abandoned: float = ABANDONED) -> None:
    """Remove what killed writers left in a folder.

    Arguments:
        folder: The folder.
        abandoned: The age in seconds from which it counts as left; 0 where no other writer can be at work.
    """
    for left in folder.glob(f"{STAGING}*"):
        with contextlib.suppress(OSError):
            if not left.is_symlink() and time.time() - left.stat().st_mtime >= abandoned:
                shutil.rmtree(left, ignore_errors=True)


def opened(path: Path) -> BufferedReader:
    """A regular file, open to be read; a pipe, a device or a folder is an OSError and is never waited for."""
    file = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb")
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
    return int(chosen) << 20 if chosen.isdecimal() else int(SHARE * available_mib() * 2**20)
