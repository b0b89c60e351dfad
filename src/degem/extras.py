"""Packages that only some methods or figures need: an extra installs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from degem.errors import DegemError


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Around the import of an optional package: says in one line what to install where it is missing.

    Arguments:
        extra: The extra that installs the package.
        what: What needs it.

    Example:
        >>> with needs_extra("bench", "GPN"):
        ...     import no_such_package
        Traceback (most recent call last):
            ...
        degem.errors.DegemError: GPN needs the package no_such_package: pip install 'degem[bench]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "that is missing").partition(".")[0]
        raise DegemError(f"{what} needs the package {package}: pip install 'degem[{extra}]'") from None
