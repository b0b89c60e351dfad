"""What the command says beside its results: lines through the logger ``degem``, and how far it is, both to stderr."""

from __future__ import annotations

import logging
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import typer

from degem.errors import CalibrationWarning, GraphNotice, ScoreWarning, one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

    from degem.training import OnProgress, Progress

DELAY = 2.0  # seconds of work before a bar is shown
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


@contextmanager
def progress_bar(console: Console | None = None, *, delay: float = DELAY) -> Iterator[OnProgress]:
    """A listener for ``on_progress=`` that draws phase, loss, rows a second and time left on a terminal (stderr)."""
    from rich.console import Console

    from degem.training import silent

    console = console or Console(stderr=True)
    if not console.is_terminal or is_quiet():
        yield silent
        return
    bar = _bar(console)
    timer = threading.Timer(delay, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield _Listener(bar)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _bar(console: Console) -> Bar:
    from rich import progress

    return progress.Progress(
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[loss]}"),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeRemainingColumn(),
        console=console,
        transient=True,
    )


class _Listener:
    """Shows one phase at a time."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar
        self.phase: str | None = None
        self.started, self.done = 0.0, 0

    def __call__(self, progress: Progress) -> None:
        if progress.phase != self.phase or progress.done < self.done:  # the same phase may come again
            for finished in self.bar.task_ids:
                self.bar.remove_task(finished)
            self.task = self.bar.add_task(progress.phase, total=progress.total, loss="", rate="")
            self.phase, self.started = progress.phase, time.perf_counter()
        self.done = progress.done
        self.bar.update(
            self.task, completed=progress.done, total=progress.total, loss=_loss(progress), rate=self._rate(progress)
        )

    def _rate(self, progress: Progress) -> str:
        seconds = time.perf_counter() - self.started
        return f"{progress.rows / seconds:,.0f} rows/s" if progress.rows and seconds > 0 else ""


def _loss(progress: Progress) -> str:
    """The loss, or failing that the first metric."""
    if not progress.metrics:
        return ""
    name = "loss" if "loss" in progress.metrics else next(iter(progress.metrics))
    return f"{name} {progress.metrics[name]:.4g}"
