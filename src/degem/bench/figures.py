"""The paper's figures from our rows: overall AUROC by method, AUROC by label rate and homophily."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from degem.bench.store import made_folder
from degem.bench.summary import Entry, Results, entries, overall
from degem.files import replaced

BLUE, ORANGE = "#4477aa", "#ee8866"


def draw_all(results: Results, folder: Path) -> list[Path]:
    """Draw every figure there are rows for, as PNG and SVG; the files written."""
    made_folder(folder)
    figures: dict[str, Figure] = {}
    for protocol in results.protocols:
        drawn = (_overall(results, protocol), _label_rate(results, protocol), _homophily(results, protocol))
        for name, figure in zip(("overall", "label-rate", "homophily"), drawn, strict=True):
            if figure is not None:
                figures[f"{name}-{protocol}"] = figure
    paths = []
    with mpl.rc_context({"svg.hashsalt": "degem", "svg.fonttype": "none"}):  # the same rows give the same file
        for name, figure in figures.items():
            for suffix in ("png", "svg"):
                paths.append(folder / f"{name}.{suffix}")
                metadata = {"Date": None} if suffix == "svg" else {}
                with replaced(paths[-1], follow_link=True) as file:
                    figure.savefig(file, format=suffix, dpi=150, metadata=metadata)
    return paths


def _overall(results: Results, protocol: str) -> Figure | None:
    """Bars by method on homophilic and heterophilic graphs, the published mean as a line across each bar."""
    spec = results.table("main", protocol)
    means = overall(entries(spec, results.rows, protocol)) if spec else []
    if not means:
        return None
    kinds = list(dict.fromkeys(one.group for one in means))
    figure = Figure(figsize=(9, 3.2 * len(kinds)), layout="constrained")
    for kind, axes in zip(kinds, np.atleast_1d(figure.subplots(len(kinds), 1)), strict=True):
        here = sorted((one for one in means if one.group == kind), key=lambda one: one.ours)
        places = np.arange(len(here))
        axes.bar(places, [one.ours for one in here], color=BLUE, label=f"ours, {protocol}")
        known = [(at, one.published) for at, one in zip(places, here, strict=True) if not math.isnan(one.published)]
        if known:
            axes.scatter(*zip(*known, strict=True), marker="_", s=300, color=ORANGE, label="published, oracle")
        axes.axhline(50, color="grey", linewidth=0.8, linestyle=":")
        axes.set_xticks(places, [one.row for one in here], rotation=45, ha="right")
        axes.set_ylabel("AUROC, %")
        axes.set_title(f"{kind} graphs, mean over {here[0].count} cells")
        axes.legend(loc="lower right")
    return figure


def _label_rate(results: Results, protocol: str) -> Figure | None:
    spec = results.table("label-rate", protocol)
    table = entries(spec, results.rows, protocol) if spec else []
    places = {(entry.dataset, entry.shift) for entry in table}
    return _curves(
        table,
        lambda entry: 100 * entry.label_rate,
        f"share of training labels, % (mean over {len(places)} cells, {protocol})",
        len(places),
    )


def _homophily(results: Results, protocol: str) -> Figure | None:
    spec = results.table("homophily", protocol)
    table = entries(spec, results.rows, protocol) if spec else []
    return _curves(table, lambda entry: float(entry.dataset.rsplit("-", 1)[1]), f"edge homophily ({protocol})", 1)


def _curves(table: list[Entry], at: Callable[[Entry], float], axis: str, wanted: int) -> Figure | None:
    """Mean AUROC against a number, a line a method: ours drawn through, the published dashed."""
    lines = [line for line in _lines(table, at, wanted) if line[1]]
    if not lines:
        return None
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for colour, (name, ours, printed) in enumerate(lines):
        axes.plot(*zip(*ours, strict=True), marker="o", color=f"C{colour}", label=name)
        if printed:
            label = f"{name}, published"
            axes.plot(*zip(*printed, strict=True), marker="x", linestyle="--", color=f"C{colour}", label=label)
    axes.set_xlabel(axis)
    axes.set_ylabel("AUROC, %")
    axes.legend()
    return figure


Points = list[tuple[float, float]]


def _lines(table: list[Entry], at: Callable[[Entry], float], wanted: int) -> Iterator[tuple[str, Points, Points]]:
    """For each row of a table its points (ours, published); a point needs every place, or means would not compare."""
    for name in dict.fromkeys(entry.row for entry in table):
        mine = [entry for entry in table if entry.row == name and entry.ours]
        ours, printed = [], []
        for place in sorted({at(entry) for entry in mine}):
            here = [entry for entry in mine if at(entry) == place]
            if len(here) == wanted:
                ours.append((place, float(np.mean([entry.ours.mean for entry in here if entry.ours]))))
                figure = float(np.mean([entry.published for entry in here]))
                printed += [] if math.isnan(figure) else [(place, figure)]
        yield name, ours, printed
