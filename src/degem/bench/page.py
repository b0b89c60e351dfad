"""The pages of results, written from the rows alone: tables, what reproduces, what does not and why; and of arrival."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from degem.bench.comparison import standings_grid
from degem.bench.formats import markdown
from degem.bench.paper import published_seconds
from degem.bench.specs import TRIVIAL, Spec
from degem.bench.store import Row
from degem.bench.summary import CEILING, PARTS, Entry, Results, collected, entries, estimate
from degem.bench.tables import beside_arrival, grids

CLOSE = 2.0  # points: nearer than this is called reproduced
REVERSED = ("odin", "mahalanobis")  # published with the sign of the score turned over

ARRIVAL = Path(__file__).with_name("arrival.md").read_text(encoding="utf-8")
HEAD = """# Results

Written by `degem bench docs` from stored rows; nothing on this page was typed. AUROC, AUPR, FPR95 and accuracy are in
percent, with in-distribution nodes as the positive class, as in the paper. Features of every scenario have unit row
sums (signed features stay as they are), for every method alike.

- **arrival**: the case of a user: new ID nodes and a few OOD nodes, absent at fitting, join the graph, which is scored
  once. False alarms and found are the shares of both with p ≤ 0.05.
- **strict**: one configuration for all data; a fit sees the training graph alone, in which label shifts leave OOD
  nodes, without a label, as in the paper. [method.md](method.md) tells how the default configuration itself was chosen.
- **oracle**: the paper's way: the step with the best test AUROC + test accuracy counts.

The published figures are an oracle of one run each. Where energies are propagated, a node without neighbours keeps its
own; the authors' programs draw it towards zero, the energy of an outlier, which helps GNNSafe and NodeSafe on structure
shifts whose random graph has such nodes (Cora, Cornell, Actor). That random graph is as dense as the pairs that
loaders hand out; structure cells of Chameleon, Actor and Cornell under oracle, and of the tables ablation, gcl,
label-rate and gnnsafe-settings, are of one nearly twice as dense, as it was made before.
"""


def results_page(results: Results, pictures: Sequence[str] = ()) -> str:
    """The whole page, in Markdown.

    Arguments:
        results: The rows, and the tables they fill.
        pictures: Paths of figures to show, as seen from the page.
    """
    lines = [HEAD, markdown(standings_grid(results.rows)), *_coverage(results)]
    lines += [f"![{picture}]({picture})\n" for picture in pictures]
    for protocol in results.protocols:
        lines += [f"## Protocol {protocol}", ""]
        for spec in (spec for spec, kind in results.tables if kind == protocol):
            lines += [f"### {spec.title}", "", *_statements(spec, results, protocol)]
            lines += [markdown(grid) for grid in reversed(grids(spec, results.rows, protocol))]
        lines += _accuracies(results, protocol)
    lines += [*_protocol_gap(results), *_seconds(results), *_failures(results)]
    return "\n".join(lines).rstrip() + "\n"


def _coverage(results: Results) -> Iterator[str]:
    """How much was run, so that a mean over few seeds is not taken for more."""
    good = [row for row in results.rows if not row.error]
    versions = sorted({row.version for row in good})
    yield f"{len(good):,} rows of degem {', '.join(versions)}; {len(results.rows) - len(good)} attempts failed."
    for protocol in results.protocols:
        for dataset in dict.fromkeys(row.dataset for row in good if row.protocol == protocol):
            here = [row for row in good if row.protocol == protocol and row.dataset == dataset]
            seeds = sorted({row.seed for row in here})
            methods = len({row.method for row in here})
            yield f"- {protocol}, {dataset}: {methods} methods, seeds {', '.join(map(str, seeds))}."
    yield ""


def _statements(spec: Spec, results: Results, protocol: str) -> list[str]:
    """What reproduces and what does not, with the causes that the rows themselves show."""
    table = [entry for entry in entries(spec, results.rows, protocol) if entry.ours]
    known = [entry for entry in table if not math.isnan(entry.published)]
    if not known:
        return _artefacts(table) if protocol == "arrival" else []
    near = [entry for entry in known if abs(entry.difference) <= CLOSE]
    above = [entry for entry in known if entry.difference > CLOSE]
    below = [entry for entry in known if entry.difference < -CLOSE]
    lines = [
        f"Of {len(known)} cells with a published AUROC, {len(near)} are within {CLOSE:g} points of it, "
        f"{len(above)} above and {len(below)} below.",
        "",
    ]
    lines += [f"- {_explained(entry)}" for entry in sorted(below, key=lambda entry: entry.difference)[:12]]
    if above:
        best = sorted(above, key=lambda entry: -entry.difference)[:12]
        lines += ["", "Furthest above the published figure:", "", *(f"- {_explained(entry)}" for entry in best)]
    return [*lines, "", *_artefacts(table)]


def _explained(entry: Entry) -> str:
    """A cell, and what the figures themselves show."""
    assert entry.ours is not None
    ours = entry.ours.mean
    text = f"{entry.row}, {entry.place}: {ours:.2f} against {entry.published:.2f} ({entry.difference:+.2f})"
    known = []
    if entry.row in REVERSED and entry.published < 50 < ours:
        known.append(f"its published sign is reversed, turned over it reads {100 - entry.published:.2f}")
    if entry.dataset == "twitch":
        known.append("other features than the paper's")
    if ours < 50:
        known.append("ours is below chance here")
    return text + (f"; {'; '.join(known)}." if known else ".")


def _artefacts(table: list[Entry]) -> list[str]:
    """Cells that a detector which learns nothing solves, in either direction."""
    found = []
    for entry in table:
        if entry.row in TRIVIAL and entry.ours and max(entry.ours.mean, 100 - entry.ours.mean) >= 80:
            side = "" if entry.ours.mean >= 50 else " (turned over)"
            reach = max(entry.ours.mean, 100 - entry.ours.mean)
            found.append(f"- {entry.place}: `{entry.row}` alone reaches {reach:.1f}{side}.")
    return ["Artefacts of the shifts, seen by detectors that learn nothing:", "", *found, ""] if found else []


def _accuracies(results: Results, protocol: str) -> list[str]:
    spec = results.table("main", protocol)
    if spec is None:
        return []
    tables = [markdown(grid) for grid in grids(spec, results.rows, protocol, "acc")[-1:]]
    return ["### Accuracy on ID test nodes", "", *tables]


def _protocol_gap(results: Results) -> list[str]:
    """What each protocol costs, on the cells that several have."""
    by_protocol = {  # the cells of arrival hold other nodes
        protocol: collected(results.rows, protocol) for protocol in results.protocols if protocol != "arrival"
    }
    if "strict" not in by_protocol or len(by_protocol) < 2:
        return []
    lines = ["## What the protocols cost", "", "| method | protocol | cells | mean AUROC | strict, same cells | Δ |"]
    lines.append("|---|---|---:|---:|---:|---:|")
    for protocol in by_protocol:
        for (method, settings), places in sorted(by_protocol[protocol].items()):
            strict = by_protocol["strict"].get((method, settings), {})
            pairs = [(_mean(places[place]), _mean(strict[place])) for place in places.keys() & strict.keys()]
            pairs = [pair for pair in pairs if not any(map(math.isnan, pair))]
            if protocol != "strict" and settings == "{}" and pairs:
                here, there = (estimate(side).mean for side in zip(*pairs, strict=True))
                lines.append(
                    f"| {method} | {protocol} | {len(pairs)} | {here:.2f} | {there:.2f} | {here - there:+.2f} |"
                )
    return [*lines, ""]


def _mean(seeds: dict[int, Row]) -> float:
    good = [row.auroc for row in seeds.values() if not row.error]
    return estimate(good).mean if good else math.nan


def _seconds(results: Results) -> list[str]:
    """Seconds of training beside the published ones, which come from another machine.

    Rows are made side by side, some beside other work: the least of them says most about a method.
    """
    spec = results.table("main")
    if spec is None:
        return []
    values = collected(results.rows, "strict")
    datasets = [dataset for dataset in spec.datasets if any(row.dataset == dataset for row in results.rows)]
    lines = ["## Seconds of training (published: another machine)", ""]
    lines += ["The least over seeds and shifts: rows were made beside each other, many on a busy machine.", ""]
    lines += [f"| method | {' | '.join(datasets)} |", "|---|" + "---:|" * len(datasets)]
    for variant in spec.variants:
        cells = []
        for dataset in datasets:
            places = values.get((variant.method, "{}"), {})
            rows = [row for place, seeds in places.items() if place[0] == dataset for row in seeds.values()]
            times = [row.fit_seconds for row in rows if not row.error]
            printed = published_seconds().get((variant.method, dataset))
            text = f"{min(times):.1f}" if times else ""
            cells.append(text + (f" ({printed:.1f})" if printed and times else ""))
        if any(cells):
            lines.append(f"| {variant.name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _failures(results: Results) -> list[str]:
    done = {(row.key[:5], row.parameters) for row in results.rows if not row.error}
    lost = [row for row in results.rows if row.error and (row.key[:5], row.parameters) not in done]
    lines = {f"- {row.method}, {row.dataset} {row.shift}, {row.protocol}: {row.error}" for row in lost}
    return ["## What failed", "", *sorted(lines), ""] if lines else []


def arrival_page(results: Results) -> str:
    """The whole page, in Markdown; without rows of arrival the text alone."""
    spec = results.table("arrival", "arrival")
    if spec is None:
        return ARRIVAL
    table = entries(spec, results.rows, "arrival")
    beside = beside_arrival(spec, results.rows)
    lines = ["| arrival | degem | false alarms | found | best other detector | best simple one | shown examples |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for place in dict.fromkeys((entry.dataset, entry.shift) for entry in table):
        here = {entry.row: entry for entry in table if (entry.dataset, entry.shift) == place and entry.ours}
        if "degem" not in here:
            continue
        others = [entry for entry in here.values() if entry.part == PARTS[0] and not entry.row.startswith("degem")]
        shares = [_figure(beside[name].get((*place, "degem"))) for name in beside]
        simple = [entry for entry in here.values() if entry.part == PARTS[2]]
        cells = [" ".join(place), _figure(here["degem"]), *shares, _best(others), _best(simple)]
        lines.append(f"| {' | '.join([*cells, _figure(here.get(CEILING.name))])} |")
    return "\n".join([ARRIVAL, *lines]) + "\n"


def _best(table: list[Entry]) -> str:
    if not table:
        return ""
    best = max(table, key=lambda entry: entry.ours.mean if entry.ours else 0.0)
    return f"{_figure(best)} {best.row}"


def _figure(entry: Entry | None) -> str:
    return "" if entry is None or entry.ours is None else f"{entry.ours.mean:.1f}"
