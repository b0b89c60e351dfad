from __future__ import annotations

import io
import time

from rich.console import Console

from degem.cli.messages import progress_bar
from degem.training import Progress, silent


def _terminal() -> tuple[Console, io.StringIO]:
    drawn = io.StringIO()
    return Console(file=drawn, force_terminal=True, width=120), drawn


def test_nothing_where_there_is_no_terminal():
    drawn = io.StringIO()
    with progress_bar(Console(file=drawn), delay=0) as listener:
        assert listener is silent
    assert drawn.getvalue() == ""


def test_nothing_on_short_work():
    console, drawn = _terminal()
    with progress_bar(console, delay=60) as listener:
        listener(Progress("train", 1, 2))
    assert drawn.getvalue() == ""


def test_phase_loss_rate_and_time_left():
    console, drawn = _terminal()
    with progress_bar(console, delay=0) as listener:
        time.sleep(0.05)
        listener(Progress("propagate", 1, 5))
        listener(Progress("train", 0, 100))
        time.sleep(0.05)
        listener(Progress("train", 20, 100, {"energy": 3.0, "loss": 1.0}, rows=2000))
        time.sleep(0.05)
        listener(Progress("train", 40, 100, {"energy": 3.0, "loss": 0.123}, rows=4000))
        time.sleep(0.6)  # rich reckons the time left twice a second
    shown = drawn.getvalue()
    for part in ("train", "40/100", "loss 0.123", "rows/s", "0:00:0"):
        assert part in shown
    assert "energy" not in shown


def test_a_phase_that_comes_again_counts_anew():
    console, drawn = _terminal()
    with progress_bar(console, delay=0) as listener:
        listener(Progress("propagate", 10, 10, rows=10**9))
        time.sleep(0.05)
        listener(Progress("propagate", 1, 10, rows=1))
        started = listener.started  # type: ignore[attr-defined]
        listener(Progress("propagate", 2, 10, rows=2))
        assert listener.started == started  # type: ignore[attr-defined]
        assert time.perf_counter() - started < 0.05
    assert "propagate" in drawn.getvalue()
