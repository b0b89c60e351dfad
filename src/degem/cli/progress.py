"""The progress bar: on a terminal, and only for work that takes longer than two seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from degem.cli.messages import is_quiet
from degem.training import OnProgress, Progress, silent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

DELAY = 2.0


@contextmanager
def progress_bar(console: Console | None = None, *, delay: float = DELAY) -> Iterator[OnProgress]:
    """A listener for ``on_progress=`` that draws phase, loss, rows a second and time left on stderr.

    Arguments:
        console: Where to draw; default: stderr. Nothing is drawn where that is no terminal.
        delay: Seconds of work before the bar appears.
    """
    from rich.console import Console

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
