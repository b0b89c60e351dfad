"""``degem demo``: new nodes arrive in two bundled graphs, offline, in under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from degem.cli import options
from degem.cli.common import check_folder, prepare_machine, print_json, print_table, write_table
from degem.cli.evaluate import judged, measured
from degem.cli.messages import progress_bar

ALPHA = 0.05

if TYPE_CHECKING:
    import pandas as pd

    from degem import Detector, Graph


def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where graphs, models, scores and reports go.")] = Path(
        "demo"
    ),
    mkdir: options.Mkdir = False,
    seed: options.Seed = 0,
    threads: Annotated[
        int, typer.Option(min=1, help="CPU threads to use; graphs this small gain nothing from a second.")
    ] = 1,
    as_json: options.AsJson = False,
) -> None:
    """Train DeGEM on two bundled graphs, let new nodes arrive, and show how well it finds the strange ones.

    One graph joins each of scikit-learn's digits to its ten nearest neighbours: it is fitted on some of 0 to 6, then
    others of them arrive and a few of 7 to 9, which are OOD. The other is heterophilic, from a generator. No network is
    needed.

    Example: degem demo --out demo
    """
    from degem import DeGEM
    from degem.data.demo import arriving, digits_graph, heterophilic_graph

    check_folder(out, mkdir)
    prepare_machine(threads, None)
    rows = []
    for name, graph in {"digits": digits_graph(seed=seed), "heterophilic": heterophilic_graph(seed=seed)}.items():
        graphs = arriving(graph, seed=seed)
        rows.append(_run(DeGEM(seed=seed), *graphs, name, out / name))
        rows += [_run(other, *graphs, name) for other in _beside(seed)]
    if as_json:
        print_json(rows)
    else:
        _print(rows, out)


def _beside(seed: int) -> list[Detector]:
    """What DeGEM is compared with: three readings of one classifier."""
    from degem.detectors.backbone import BackboneCache
    from degem.detectors.logits import MSP, Energy, GNNSafe

    cache = BackboneCache()
    return [kind(seed=seed).share(cache) for kind in (MSP, Energy, GNNSafe)]


def _run(detector: Detector, before: Graph, after: Graph, name: str, folder: Path | None = None) -> dict[str, Any]:
    """Fit a detector before the arrival, judge it after, and leave all there is to see in ``folder``."""

    with progress_bar() as on_progress:
        detector.fit(before, on_progress=on_progress)
    table = detector.score_table(after, alpha=ALPHA)
    is_ood = after.columns["is_ood"]
    if folder is not None:
        _write(folder, before, after, detector, table)
    return {"graph": name, "method": detector.name, **measured(table, after, judged(after, is_ood), is_ood)}


def _write(folder: Path, before: Graph, after: Graph, detector: Detector, table: pd.DataFrame) -> None:
    from degem.data.archives import write_npz
    from degem.report import write_report

    folder.mkdir(parents=True, exist_ok=True)
    write_npz(before, folder / "before.npz")
    write_npz(after, folder / "after.npz")
    detector.save(folder / "model")
    write_table(table, folder / "scores.parquet")
    report = folder / "report.html"
    write_report(detector, after, report, alpha=ALPHA, is_ood=after.columns["is_ood"], reference=before)


def _print(rows: list[dict[str, Any]], out: Path) -> None:
    columns = {
        "auroc": "AUROC",
        "aupr_ood_positive": "AUPR",
        "fpr95_ood_positive": "FPR95",
        "id_accuracy": "ID acc.",
        "flagged_ood": "OOD flagged",
        "flagged_id": f"false alarms (α = {100 * ALPHA:g})",
    }
    title = "New nodes, in percent; OOD is the class to find. Lower is better for FPR95."
    lines = [(row["graph"], row["method"], *(f"{100 * row[column]:.1f}" for column in columns)) for row in rows]
    print_table(("graph", "method", *columns.values()), lines, title=title, texts=2)
    typer.echo(f"Look at {out}/digits/report.html; graphs, models and scores are beside it.")
