"""Writes ``docs/scale.md`` and ``docs/scale.png``: every figure comes from the tables in ``benchmarks/results``.

python benchmarks/speed.py && python benchmarks/batches.py && python benchmarks/harness.py
python benchmarks/scale.py && python benchmarks/scale_page.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bars
import large_graph
import matplotlib as mpl
import measure
import pandas as pd
import scale
from degem.detectors.degem.staged import used_hops
from degem.detectors.degem.staged_model import projection_size
from degem.detectors.degem.staged_trainer import MAX_CORRUPTIONS, MAX_POOL
from degem.detectors.degem.terms import TERMS
from matplotlib import pyplot as plt

from degem import DeGEM
from degem.ops.mapped import BUDGET_SHARE

PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
NODES_OF_100M, ENTRIES_OF_100M = 1e8, 3.2e9  # 1.6 billion edges, each stored from both ends
BUSY = 0.2
Row = dict[str, Any]

TEXT = """# Fast on two cores, bounded in memory

{machine}

## Bars

What speed and memory are held to, and the worst figure of the tables below:

{bars}

## Against the paper's algorithm

`python benchmarks/speed.py` fits DeGEM at its defaults and a plain transcription of the paper's Algorithm 1 (full
batch, dense hop features, d = 512, 200 epochs, Langevin steps through autograd) on the same training graph. Memory is
by how much the process grew during the fit; AUROC is strict, in %, one seed.

{fits}

The same fits beside those of two classifiers' scores, at their own settings:

{rivals}

## Parts

`sample` moves as many chains as there are training nodes K = 20 steps at d = 512, against autograd. `propagate` is one
hop of 128 columns, against the fastest of SciPy, two PyTorch kernels and a plain numba loop. `score` is scoring a whole
graph, against its matrix products alone, done by the same kernels.

{parts}

## Mini-batches against the whole graph

`python benchmarks/batches.py`: strict AUROC in % of DeGEM at its defaults and with every node in every step, over
seeds, and their difference with its standard error.

{batches}

## Against the number of nodes

`python benchmarks/scale.py` makes graphs of ten edges a node and 128 features, opens them as memory maps, fits and
scores. Memory is everything resident in the process.

{sizes}

Time grows with the number of nodes to the power {fit_exponent:.2f} (fit), {score_exponent:.2f} (score), and
{both_exponent:.2f} (both together).{from_1m_to_10m}

![Time and memory against nodes](scale.png)

## Where the time goes

Seconds of a fit, and of scoring every node:

{where}

A fit propagates {width} columns (more where there are more features) over {num_hops} hops: for the nodes it trains on,
for each corrupted graph (as many as the negatives use up, at most {corruptions}; one from {one_corruption:,} nodes on),
and for everybody's energies, which scale the terms and calibrate. The steps between do not depend on the size of the
graph: {encoder_steps} of the encoder, {head_steps} of the head, on at most {pool:,} sampled nodes beside the training
nodes, of which at most {pool:,} are taken. On a small graph the steps are nearly all of the time, on a large one
propagation is.

Hop features of all nodes take 4 · {kept} · {width} bytes a node. Beyond the memory budget (`memory_budget`, by default
{budget_share:.0%} of what is free) they go to nameless files in the folder for temporary files, which are gone when the
process ends, in whatever way; and fewer columns are propagated at a time. Both give the same bits. The files go past
the system's cache: memory that a virtual machine has to ask its host for can be slower to fill than the disk.
`degem fit GRAPH --dry-run` tells memory, disk and time beforehand.

## A hundred million nodes

{arithmetic}

## The benchmark's harness

`python benchmarks/harness.py` runs part of the main table as a user would and sets its whole time, from start to end,
against the fitting and scoring in it:

{harness}
"""


def main() -> None:
    sizes = read("scale").sort_values(["graph", "nodes"])
    rows = [{str(name): value for name, value in row.items()} for row in sizes.to_dict("records")]
    PAGE.write_text(page(sizes, rows), encoding="utf-8")
    plot([row for row in rows if row["graph"] == "generated"], PAGE.with_suffix(".png"))


def page(sizes: pd.DataFrame, rows: list[Row]) -> str:
    """The page's text."""
    speed, rivals, batches, harness = (read(name) for name in ("speed", "fit-times", "batches", "harness"))
    fits, parts = speed[speed["what"] == "fit"], speed[speed["what"] != "fit"]
    settings = DeGEM()
    return TEXT.format(
        machine=machine_line(pd.concat([speed, sizes])),
        bars=bars.table(speed, rivals, batches, sizes),
        fits=table(
            fits,
            "dataset shift seconds baseline_seconds speedup peak_mib baseline_peak_mib auroc baseline_auroc baseline",
        ),
        rivals=table(rivals, "dataset kind method seconds degem_seconds ratio"),
        parts=table(parts, "what dataset seconds baseline_seconds speedup baseline"),
        batches=table(batches, "dataset shift seeds batch_mean whole_mean difference standard_error"),
        sizes=table(sizes, "graph nodes edges read_seconds fit_seconds score_seconds fit_peak_mib score_peak_mib"),
        where=table(sizes, " ".join(["graph nodes", *(f"fit_{part}_seconds" for part in scale.PARTS)])),
        harness=table(harness, "command workers fits wall_seconds fit_and_score_seconds added_percent"),
        fit_exponent=scale.exponent(rows, "fit"),
        score_exponent=scale.exponent(rows, "score"),
        both_exponent=scale.exponent(rows, "fit", "score"),
        from_1m_to_10m=from_1m_to_10m(rows),
        budget_share=BUDGET_SHARE,
        width=columns_propagated(),
        num_hops=settings.num_hops,
        kept=len(used_hops(settings.num_hops)),
        corruptions=MAX_CORRUPTIONS,
        one_corruption=settings.num_epochs * (settings.batch_size or 0),
        encoder_steps=settings.num_epochs,
        head_steps=settings.num_head_steps,
        pool=MAX_POOL,
        arithmetic=arithmetic(rows),
    )


def columns_propagated() -> int:
    """The columns that a generated graph's features are projected to."""
    settings = DeGEM()
    return sum(projection_size(large_graph.NUM_FEATURES, settings.projection_dim, settings.random_dim))


def read(name: str) -> pd.DataFrame:
    """A table of results."""
    path = measure.RESULTS / f"{name}.csv"
    return pd.read_csv(path, keep_default_na=False, na_values=[""]) if path.exists() else pd.DataFrame()


def machine_line(rows: pd.DataFrame) -> str:
    """Where the figures were measured."""
    first, busy = rows.iloc[0], rows["busy_before"].max()
    warning = "" if busy < BUSY else f" **Other programs used up to {busy:.0%} of the cores: times are too long.**"
    return f"Measured on {first['machine']}, {first['threads']} threads, PyTorch {first['torch']}.{warning}"


def from_1m_to_10m(rows: list[Row]) -> str:
    """How much longer ten million nodes take than one million."""
    seconds = {row["nodes"]: row["fit_seconds"] + row["score_seconds"] for row in rows if row["graph"] == "generated"}
    small, large = seconds.get(10**6), seconds.get(10**7)
    return f" Ten million nodes take {large / small:.1f} times as long as one million." if small and large else ""


def plot(rows: list[Row], path: Path) -> None:
    """Seconds and peak memory of the generated graphs over nodes, on logarithmic axes."""
    mpl.use("Agg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    nodes = [row["nodes"] for row in rows]
    for phase in ("read", "fit", "score"):
        label = phase if phase == "read" else f"{phase}: exponent {scale.exponent(rows, phase):.2f}"
        left.loglog(nodes, [row[f"{phase}_seconds"] for row in rows], marker="o", label=label)
        right.loglog(nodes, [row[f"{phase}_peak_mib"] / 1024 for row in rows], marker="o", label=phase)
    left.set(xlabel="nodes", ylabel="seconds")
    right.set(xlabel="nodes", ylabel="peak resident memory, GiB")
    left.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def arithmetic(rows: list[Row]) -> str:
    """What the largest measured graph says of 100M nodes and 1.6B edges."""
    settings = DeGEM()
    width, kept = columns_propagated(), len(used_hops(settings.num_hops))
    largest = max((row for row in rows if row["graph"] == "generated"), key=lambda row: row["nodes"])
    entries = 2 * largest["edges"]
    hours = {phase: largest[f"{phase}_seconds"] * ENTRIES_OF_100M / entries / 3600 for phase in ("fit", "score")}
    gb = 4 * NODES_OF_100M / 1e9  # of one float32 a node
    outputs = len(TERMS) + large_graph.NUM_CLASSES
    return (
        f"At {largest['nodes']:,} nodes and {largest['edges']:,} edges a fit took {largest['fit_seconds']:,.0f} s and "
        f"scoring {largest['score_seconds']:,.0f} s. Both follow the stored edges; 1.6 billion edges are "
        f"{ENTRIES_OF_100M / entries:.0f} times as many: about {hours['fit']:.1f} hours to fit and "
        f"{hours['score']:.1f} to score, if as many of the columns are propagated at a time. On disk: "
        f"{gb * large_graph.NUM_FEATURES:.0f} GB of features, {8 * ENTRIES_OF_100M / 1e9:.1f} GB of edges (SciPy wants "
        f"64-bit indices beyond 2³¹ entries) and {gb * kept * width:.0f} GB of temporary hop features. In memory: the "
        f"edges, as far as the machine keeps what it read; two arrays of {gb:.1f} GB for each column that is "
        f"propagated at a time, which is {2 * 16 * gb:.1f} GB for 16 of them; and, when these are gone, {outputs} "
        f"numbers a node of terms and class probabilities ({large_graph.NUM_CLASSES} classes), {gb * outputs:.1f} GB, "
        "up to three times while they are smoothed."
    )


def table(rows: pd.DataFrame, columns: str) -> str:
    """Rows as a Markdown table."""
    if rows.empty:
        return "Not measured yet."
    texts = rows[columns.split()].map(_text)
    return measure.markdown_table(texts.rename(columns=lambda name: name.replace("_", " "))).rstrip()


def _text(value: Any) -> str:
    if pd.isna(value):
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    main()
