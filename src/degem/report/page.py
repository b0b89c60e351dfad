"""The report of a scored graph: which nodes are flagged, how sure that is, and why."""

from __future__ import annotations

import dataclasses
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA

from degem import calibration, groups
from degem.calibration import Judged, ScoreResult, judge
from degem.calibration.decisions import numbered_as
from degem.detectors.base import Detector, HasLatents
from degem.errors import GraphError
from degem.explain import class_names, explain
from degem.extras import needs_extra
from degem.files import write_text
from degem.graph import Graph, as_graph
from degem.metrics import risk_coverage
from degem.report import figures, tallies, truth
from degem.report.figures import Figure, rounded
from degem.report.html import fill

MAX_MAP_NODES = 4_000
NUM_TABLE_NODES = 100
Projection = Literal["pca", "umap"]


def write_report(
    detector: Detector,
    graph: Any,
    path: str | Path,
    *,
    alpha: float = 0.05,
    is_ood: ArrayLike | None = None,
    time: str | None = None,
    reference: Any | None = None,
    projection: Projection = "pca",
    title: str = "Which nodes not to trust",
) -> None:
    """Write the report of ``graph`` as one HTML file that needs no network.

    Arguments:
        detector: A fitted detector.
        graph: The graph to score.
        path: The file to write.
        alpha: The false-alarm rate the page opens with; its slider moves it.
        is_ood: The ground truth if there is one, 1 = OOD; adds curves, metrics and the confusion.
        time: A column of the graph's node table to break the flags down by.
        reference: The training graph; names the nearest training nodes in the explanations.
        projection: How latents are drawn in two dimensions.
        title: The page's title.

    Example:
        >>> from degem import DeGEM
        >>> from degem.data.demo import digits_graph
        >>> graph = digits_graph()
        >>> detector = DeGEM(num_epochs=2, latent_dim=16).fit(graph)
        >>> folder = getfixture("tmp_path")
        >>> write_report(detector, graph, folder / "report.html")
        >>> (folder / "report.html").stat().st_size < 6_000_000
        True
    """
    data = report_data(
        detector, graph, alpha=alpha, is_ood=is_ood, time=time, reference=reference, projection=projection
    )
    write_text(path, fill("report", title, data))


def report_data(
    detector: Detector,
    graph: Any,
    *,
    alpha: float = 0.05,
    is_ood: ArrayLike | None = None,
    time: str | None = None,
    reference: Any | None = None,
    projection: Projection = "pca",
) -> dict[str, Any]:
    """All that the page shows, as plain data; arguments as in :func:`write_report`."""
    graph = as_graph(graph)
    judged = judge(detector, graph)
    scored, held_out = judged.result, judged.calibration_scores
    scores = np.asarray(scored.scores, dtype=np.float64)
    p_values = judged.p_values()
    alphas = tallies.alpha_grid(alpha)
    level = tallies.levels(p_values, alphas)
    known = None if is_ood is None else truth.check_truth(np.asarray(is_ood), graph.num_nodes)
    top = np.argsort(-scores, kind="stable")[:NUM_TABLE_NODES]
    return {
        "method": type(detector).__name__,
        "numNodes": graph.num_nodes,
        "numCalibration": len(held_out),
        "alphas": alphas.tolist(),
        "start": int(np.searchsorted(alphas, alpha)),
        "thresholds": rounded([calibration.threshold(held_out, rate) for rate in alphas], 7),
        "flagged": tallies.flagged_counts(level, len(alphas)).tolist(),
        "histogram": _histogram(held_out, scored, known),
        "pValues": figures.p_value_plot(p_values),
        "groups": _groups(detector, graph, scored, level, len(alphas), time),
        "map": _map(detector, graph, scored, level, top, projection),
        "table": _table(detector, judged, level, top, reference),
        "trust": _trust(detector, judged),
        "truth": None if known is None else _truth(graph, scores, known, level, len(alphas), detector.seed),
        "card": _card(detector, graph, len(held_out)),
        "training": figures.training_curve(detector.history_),
    }


def _histogram(held_out: NDArray[np.float64], scored: ScoreResult, known: NDArray[np.bool_] | None) -> Figure:
    scores = scored.scores
    if known is None:
        samples, names, colours = [held_out, scores], ["calibration nodes", "scored nodes"], ["@ink", "@ood"]
    else:
        samples, names = [held_out, scores[~known], scores[known]], ["calibration nodes", "ID nodes", "OOD nodes"]
        colours = ["@ink", "@id", "@ood"]
    found = tallies.histogram(samples)
    note = "The outermost bins also hold the scores beyond them." if found.clipped else None
    return figures.score_histogram(found, names, colours) | {"note": note}


def _groups(
    detector: Detector, graph: Graph, scored: ScoreResult, level: NDArray[np.int64], num_alphas: int, time: str | None
) -> list[dict[str, Any]]:
    partitions = [groups.by_degree(graph.degrees)]
    if scored.probabilities is not None:
        partitions.insert(0, groups.by_class(scored.probabilities.argmax(axis=1), class_names(detector)))
    if time is not None:
        if time not in graph.columns:
            raise GraphError(f"the graph has no column {time!r}; it has {', '.join(graph.columns) or 'none'}")
        partitions.append(groups.by_time(time, graph.columns[time]))
    found = []
    for partition in partitions:
        sizes = partition.sizes
        filled = np.flatnonzero(sizes)
        found.append(
            {
                "title": f"by {partition.title}",
                "sizes": sizes[filled].tolist(),
                "flagged": tallies.flagged_counts(level, num_alphas, partition)[filled].tolist(),
                "figure": figures.group_bars(
                    partition.title, [partition.labels[code] for code in filled], sizes[filled]
                ),
            }
        )
    return found


def _map(
    detector: Detector,
    graph: Graph,
    scored: ScoreResult,
    level: NDArray[np.int64],
    top: NDArray[np.int64],
    projection: Projection,
) -> dict[str, Any] | None:
    """The map of at most ``MAX_MAP_NODES`` nodes: drawn at random, and the most OOD ones."""
    if not isinstance(detector, HasLatents):
        return None
    nodes, note = np.arange(graph.num_nodes), None
    if graph.num_nodes > MAX_MAP_NODES:
        drawn = np.random.default_rng(detector.seed).choice(graph.num_nodes, MAX_MAP_NODES - len(top), replace=False)
        nodes = np.union1d(drawn, top)
        note = f"{len(nodes):,} of {graph.num_nodes:,} nodes: a random sample and the {len(top)} most OOD nodes."
    points = project(detector.embed(graph, nodes=nodes), projection, detector.seed)
    return {
        "figure": figures.latent_map(points, projection.upper()),
        "note": note,
        "ids": [str(node_id) for node_id in graph.node_ids[nodes]],
        "scores": rounded(scored.scores[nodes]),
        "levels": level[nodes].tolist(),
        "degrees": graph.degrees[nodes].tolist(),
        "classes": None if scored.probabilities is None else scored.probabilities[nodes].argmax(axis=1).tolist(),
        "classNames": class_names(detector),
    }


def _table(
    detector: Detector, judged: Judged, level: NDArray[np.int64], top: NDArray[np.int64], reference: Any | None
) -> list[dict[str, Any]]:
    """The most OOD nodes, each with its explanation."""
    names, scored = class_names(detector), judged.result
    rows = []
    explained = explain(detector, judged.graph, top, reference=reference, judged=judged)
    for rank, found in enumerate(explained, start=1):
        row = found.to_dict() | {"rank": rank, "level": int(level[found.node]), "className": None, "confidence": None}
        if scored.probabilities is not None:
            chances = scored.probabilities[found.node]
            row |= {"className": names[int(chances.argmax())], "confidence": float(chances.max())}
        rows.append(row)
    return rows


def _trust(detector: Detector, judged: Judged) -> Figure | None:
    """Risk against coverage: as expected, and as measured on labelled nodes that were not there at the fit."""
    graph, probabilities = judged.graph, judged.result.probabilities
    if probabilities is None or not (judged.calibration.labels >= 0).any():
        return None
    chances = judged.error_chances(detector.classes_)
    curves = {"expected": risk_coverage(chances, chances)}
    new = graph.labelled & detector.fit_nodes_.new_in(graph)
    if new.any():
        predicted = np.asarray(detector.classes_)[probabilities[new].argmax(axis=1)]
        wrong = predicted != numbered_as(graph, detector.class_names_)[new]
        curves["measured"] = risk_coverage(wrong, chances[new])
        curves["measured, by the largest softmax"] = risk_coverage(wrong, 1 - probabilities[new].max(axis=1))
    return figures.risk_coverage_plot(curves)


def _truth(
    graph: Graph,
    scores: NDArray[np.float64],
    known: NDArray[np.bool_],
    level: NDArray[np.int64],
    num_alphas: int,
    seed: int,
) -> dict[str, Any]:
    """Curves and counts over OOD nodes and ID test nodes; the other ID nodes may have trained the model."""
    is_id = ~known & graph.masks["test"] if "test" in graph.masks else ~known
    judged = known | is_id
    metrics = truth.metrics(scores[judged], known[judged], seed)
    points = truth.curves(scores[judged], known[judged]).thinned()
    return {
        "numOod": int(known.sum()),
        "numId": int(is_id.sum()),
        "heldOut": "test" in graph.masks,
        "oodFlagged": tallies.flagged_counts(level[known], num_alphas).tolist(),
        "idFlagged": tallies.flagged_counts(level[is_id], num_alphas).tolist(),
        "metrics": [[metric.name, *rounded([metric.value, metric.low, metric.high])] for metric in metrics],
        "roc": figures.roc(points, metrics[0]),
        "precisionRecall": figures.precision_recall(points, float(known[judged].mean()), metrics[1]),
    }


def _card(detector: Detector, graph: Graph, num_calibration: int) -> list[dict[str, Any]]:
    """The model card: titles, each with rows of name and value."""
    homophily = graph.homophily()
    seconds = detector.history_.get("seconds", [])
    data = {
        "nodes": f"{graph.num_nodes:,}",
        "edges": f"{graph.num_edges:,}",
        "features": f"{graph.num_features:,}",
        "labelled nodes": f"{int(graph.labelled.sum()):,}",
        "edge homophily": "unknown" if np.isnan(homophily) else f"{homophily:.2f}",
    }
    model = {
        "method": f"{type(detector).__name__} ({detector.paper})",
        "training nodes": f"{detector.num_training_nodes_:,}",
        "calibration nodes": f"{num_calibration:,}",
        "smallest false-alarm rate": f"{1 / (num_calibration + 1):.2g}",
        "classes": ", ".join(class_names(detector)) or "none",
        "training time": f"{seconds[-1]:.1f} s" if seconds else "unknown",
    }
    versions = {package: version(package) for package in ("degem", "torch", "numpy", "scipy", "scikit-learn", "plotly")}
    parameters = {
        name: f"{value:.6g}" if isinstance(value, float) else str(value)
        for name, value in detector.get_params().items()
        if not dataclasses.is_dataclass(value)
    }
    parts = {"Scored graph": data, "Model": model, "Parameters": parameters, "Versions": versions}
    return [{"title": title, "rows": [list(row) for row in rows.items()]} for title, rows in parts.items()]


def project(latents: NDArray[np.float32], kind: Projection, seed: int) -> NDArray[np.floating[Any]]:
    """Two coordinates a row, of shape (n, 2).

    Arguments:
        latents: The latents, of shape (n, d).
        kind: ``pca``, or ``umap`` where umap-learn is installed.
        seed: Seed of UMAP.

    Example:
        >>> project(np.eye(4, dtype=np.float32), "pca", seed=0).shape
        (4, 2)
    """
    if kind == "umap":
        with needs_extra("umap", "the UMAP map (the PCA map does not)"):
            from umap import UMAP

        return np.asarray(UMAP(n_components=2, random_state=seed).fit_transform(latents))
    padded = np.pad(latents, ((0, max(0, 2 - len(latents))), (0, max(0, 2 - latents.shape[1]))))
    return np.asarray(PCA(n_components=2, svd_solver="covariance_eigh").fit_transform(padded)[: len(latents)])
