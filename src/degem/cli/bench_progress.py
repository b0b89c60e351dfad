"""What a run shows while it works: a live table on a terminal, one line a result elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from degem.bench.runner import Listener, Status
from degem.bench.store import Row
from degem.cli.messages import tell

LAST = 8


@contextmanager
def listening() -> Iterator[Listener]:
    """A listener for :func:`degem.bench.runner.run`."""
    if not sys.stderr.isatty():
        yield _print_lines
        return
    with Live(console=Console(stderr=True), refresh_per_second=4, transient=True) as live:
        yield lambda status, new: live.update(_table(status))


def _print_lines(status: Status, new: Sequence[Row]) -> None:
    first = len(status.rows) - len(new)
    for number, row in enumerate(new, first + 1):
        tell(f"{number}/{status.total} {_line(row)}", err=True)


def _line(row: Row) -> str:
    place = f"{row.method} {row.dataset} {row.shift} seed {row.seed} {row.protocol}"
    if row.error:
        return f"{place}: failed, {row.error}"
    return f"{place}: AUROC {row.auroc:.2f}, fit {row.fit_seconds:.1f} s, score {row.score_seconds:.2f} s"


def _table(status: Status) -> Table:
    now = time.perf_counter()
    done, elapsed = len(status.rows), now - status.started
    left = f", about {elapsed / done * (status.total - done) / 60:.0f} min left" if done else ""
    failures = sum(bool(row.error) for row in status.rows)
    title = f"{done} of {status.total} rows, {failures} failed, {status.skipped} done before, {elapsed:.0f} s{left}"
    table = Table("", "method", "dataset", "shift", "seed", "AUROC", "accuracy", "fit s", title=title)
    for name, begun in status.running.items():
        table.add_row("running", name, "", "", "", "", "", f"{now - begun:.0f}")
    for row in status.rows[-LAST:]:
        figures = ("failed", "", "") if row.error else (f"{row.auroc:.2f}", f"{row.acc:.2f}", f"{row.fit_seconds:.1f}")
        table.add_row("done", row.method, row.dataset, row.shift, str(row.seed), *figures)
    return table
