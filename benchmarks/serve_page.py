"""The figures of ``benchmarks/serve.py`` in ``docs/serve.md``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import measure
import pandas as pd

PAGE = Path(__file__).parents[1] / "docs" / "serve.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"
SETTINGS = {
    "provisional": ("connections",),
    "refresh": ("tolerance",),
    "kills": ("seed",),
}  # what tells rows of one dataset apart
MACHINE = ["machine", "threads", "busy_before", "torch"]
KILLS = ["kills", "batches", "events", "lost", "doubled", "gaps", "score_difference"]
ABOUT = {
    "provisional": """Batches of ten arrivals, each sent as soon as the one before on its connection is answered, while
the server refreshes what came. Wanted: 1,000 nodes a second at a p99 of 50 ms.""",
    "lag": """A hundred events a second, in batches of ten: how many seconds they wait for exact scores. Wanted on
Amazon-Photo: at most 2.""",
    "refresh": """Batches of ten events refreshed by rows, against scoring the whole graph. Wanted on arxiv-structural:
20 times faster at the default tolerance, 0.001. `rows` are scored anew, of those `within hops` of an event. Scores are
off, in standard deviations of the scores, from those with nothing left out (tolerance 0).""",
    "restart": """From the start of a killed server to its first answer, and what reading Python's packages, the model
and the graph alone takes of it. Wanted: 10 s beyond that.""",
    "memory": """Resident memory under about a hundred events a second, as many nodes going as come, the whole graph
scored every minute. Wanted: flat from a third of the time on.""",
    "kills": """`kill -9` at random moments while three clients write, every fourth while the server starts. Lost and
doubled are acknowledged events, gaps numbers that no event has. Wanted: none.""",
}


def write(rows: list[dict[str, Any]], part: str) -> None:
    """Keep rows, and show them."""
    print(pd.DataFrame(rows).to_string(index=False), flush=True)
    measure.write(rows, f"serve-{part}", key=["dataset", *SETTINGS.get(part, ())])


def seeds_of(part: str) -> set[int]:
    """The seeds that a part has rows of."""
    path = measure.RESULTS / f"serve-{part}.csv"
    return set(pd.read_csv(path)["seed"]) if path.exists() else set()


def write_page() -> None:
    """Put the figures of all parts so far into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(before + BEGIN + figures() + END + after, encoding="utf-8")


def figures() -> str:
    """A table a part."""
    parts = []
    for part, about in ABOUT.items():
        path = measure.RESULTS / f"serve-{part}.csv"
        if path.exists():
            table = pd.read_csv(path)
            if part == "kills":
                worst = {name: "max" if name == "score_difference" else "sum" for name in KILLS}
                table = table.groupby("dataset", as_index=False).agg(worst | dict.fromkeys(MACHINE, "first"))
            machine = f"{table['machine'].iloc[0]}, {table['threads'].iloc[0]} threads"
            shown = table.drop(columns=MACHINE)
            shown = shown.rename(columns=lambda name: name.replace("_", " ")).map(_text)
            parts.append(f"\n**{part}**, on {machine}. {about}\n\n{measure.markdown_table(shown)}")
    return "".join(parts) or "\nNothing is measured yet.\n"


def _text(value: Any) -> str:
    if pd.isna(value):  # of rows that were written before the column was there
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
