"""What the command says beside its results: through the logger ``degem``, to stderr, one line each."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import typer

from degem.errors import CalibrationWarning, GraphNotice, ScoreWarning, one_line

LOGGER = logging.getLogger("degem")


class _Line(logging.Formatter):
    """``degem: …`` for an error, ``degem: note: …`` for anything less."""

    def format(self, record: logging.LogRecord) -> str:
        kind = "" if record.levelno >= logging.ERROR else "note: "
        return f"degem: {kind}{one_line(record.getMessage())}"


def be_quiet() -> None:
    """From here on, errors only."""
    LOGGER.setLevel(logging.ERROR)


def is_quiet() -> bool:
    """Whether only errors are told."""
    return not LOGGER.isEnabledFor(logging.WARNING)


def tell(text: str, *, err: bool = False) -> None:
    """Print what was done, unless it is to be quiet."""
    if not is_quiet():
        typer.echo(one_line(text), err=err)


@contextmanager
def messages() -> Iterator[None]:
    """Inside, what is logged under ``degem`` goes to stderr, and so do warnings, the same one once."""
    handler, level, told = logging.StreamHandler(sys.stderr), LOGGER.level, set[str]()
    handler.setFormatter(_Line())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if (text := one_line(message)) not in told:
            LOGGER.warning("%s", text)
        told.add(text)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of libraries: nothing that a user can do
            for ours in (GraphNotice, CalibrationWarning, ScoreWarning):
                warnings.simplefilter("always", ours)
            warnings.showwarning = show
            yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
