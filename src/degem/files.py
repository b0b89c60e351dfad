"""Files written whole or not at all, and only regular files read."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

STAGING = ".degem-staging-"


@contextlib.contextmanager
def replaced(path: Path, *, follow_link: bool = False) -> Iterator[BinaryIO]:
    """A fresh file to write in the place of ``path``, put there by one rename when all went well.

    It is made exclusively in a private folder beside ``path``, so nothing that lies there already is written to, and
    flushed to the disk before the rename. A file that is replaced gives its mode to the new one.

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
    staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=target.parent))
    try:
        fresh = staging / "file"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(fresh, flags, 0o666), "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            old = target.lstat().st_mode
            if stat.S_ISREG(old):
                fresh.chmod(stat.S_IMODE(old) & 0o777)
        fresh.replace(target)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise OSError(errno.ENOSPC, f"the disk is full: make space and write {target} again", str(target)) from None
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what killed writers left in a folder; call it only where no other writer can be at work."""
    for left in folder.glob(f"{STAGING}*"):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)


def read_regular(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most ``limit`` bytes; a pipe, a device or a larger file is an OSError."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if found.st_size > limit:
            raise OSError(errno.EFBIG, f"it has {found.st_size:,} bytes, more than {limit:,}", str(path))
        return file.read(limit + 1)
