"""Figures for papers and notebooks: every function draws on Matplotlib axes and returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from degem.errors import DegemError
from degem.extras import needs_extra
from degem.metrics import auroc_ood_positive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ID_COLOUR, OOD_COLOUR, QUIET = "#3b76b8", "#d9480f", "#8d99a8"


def histogram(
    scores: ArrayLike,
    *,
    calibration: ArrayLike | None = None,
    is_ood: ArrayLike | None = None,
    threshold: float | None = None,
    num_bins: int = 50,
    ax: Axes | None = None,
) -> Axes:
    """The distribution of scores, higher = more OOD.

    Arguments:
        scores: One score a node.
        calibration: Scores of held-out ID nodes, drawn as a line.
        is_ood: The ground truth; with it ID and OOD nodes are drawn apart.
        threshold: Where nodes are flagged from, as :func:`degem.calibration.threshold` gives it.
        num_bins: Bins over the middle 99 % of the scores.
        ax: Axes to draw on; default: new ones.

    Example:
        >>> histogram([0.1, 0.2, 0.9], threshold=0.5).get_xlabel()
        'score (higher = more OOD)'
    """
    ax = _axes(ax)
    values = _vector("scores", scores)
    low, high = np.quantile(values, [0.005, 0.995])
    bins = np.linspace(low, high if high > low else low + 1, num_bins + 1)
    if is_ood is None:
        samples = {"scored nodes": (values, OOD_COLOUR)}
    else:
        truth = _truth(is_ood, len(values))
        samples = {"ID nodes": (values[~truth], ID_COLOUR), "OOD nodes": (values[truth], OOD_COLOUR)}
    for name, (sample, colour) in samples.items():
        ax.hist(_clipped(sample, bins), bins=list(bins), weights=_shares(sample), color=colour, alpha=0.65, label=name)
    if calibration is not None:
        sample = _vector("calibration", calibration)
        options: dict[str, Any] = {"histtype": "step", "color": "black", "label": "calibration nodes"}
        ax.hist(_clipped(sample, bins), bins=list(bins), weights=_shares(sample), **options)
    if threshold is not None and np.isfinite(threshold):
        ax.axvline(threshold, color="black", linestyle=":", label="threshold")
    ax.set(xlabel="score (higher = more OOD)", ylabel="share of nodes")
    ax.legend(frameon=False)
    return ax


def roc(scores: ArrayLike, is_ood: ArrayLike, *, label: str | None = None, ax: Axes | None = None) -> Axes:
    """The ROC curve with OOD as the class to find; call it again with the same axes to compare methods.

    Arguments:
        scores: One score a node, higher = more OOD.
        is_ood: The ground truth.
        label: The curve's name; its AUROC is added.
        ax: Axes to draw on; default: new ones.

    Example:
        >>> roc([0.1, 0.2, 0.9], [0, 0, 1], label="DeGEM").get_legend().get_texts()[0].get_text()
        'DeGEM (AUROC 100.0)'
    """
    from sklearn.metrics import roc_curve

    ax = _axes(ax)
    values = _vector("scores", scores)
    truth = _truth(is_ood, len(values))
    area = auroc_ood_positive(values[~truth], values[truth])
    false_alarms, recall, _ = roc_curve(truth, values)
    text = f"AUROC {100 * area:.1f}"
    ax.plot(false_alarms, recall, label=text if label is None else f"{label} ({text})")
    ax.axline((0, 0), slope=1, color=QUIET, linestyle="--", linewidth=1, zorder=0)
    ax.set(xlabel="share of ID nodes flagged", ylabel="share of OOD nodes flagged", xlim=(0, 1), ylim=(0, 1.01))
    ax.legend(frameon=False, loc="lower right")
    return ax


def latent_map(
    latents: ArrayLike, *, scores: ArrayLike | None = None, is_ood: ArrayLike | None = None, ax: Axes | None = None
) -> Axes:
    """The first two principal components of the latents, coloured by score, or by ground truth.

    Arguments:
        latents: The latents of shape (n, d), as ``detector.embed(graph)`` gives them.
        scores: One score a node.
        is_ood: The ground truth; OOD nodes are drawn on top.
        ax: Axes to draw on; default: new ones.

    Example:
        >>> latent_map(np.eye(5), is_ood=[0, 0, 0, 0, 1]).get_xlabel()
        'first principal component'
    """
    from sklearn.decomposition import PCA

    ax = _axes(ax)
    rows = np.asarray(latents, dtype=np.float64)
    if rows.ndim != 2 or min(rows.shape) < 2:
        raise DegemError(f"latents must have shape (n, d) with n and d of at least 2, got {rows.shape}")
    points = PCA(n_components=2, svd_solver="covariance_eigh").fit_transform(rows)
    options: dict[str, Any] = {"s": 8, "alpha": 0.8, "linewidths": 0, "rasterized": len(points) > 5_000}
    if is_ood is not None:
        truth = _truth(is_ood, len(points))
        ax.scatter(*points[~truth].T, color=ID_COLOUR, label="ID nodes", **options)
        ax.scatter(*points[truth].T, color=OOD_COLOUR, label="OOD nodes", **options)
        ax.legend(frameon=False)
    elif scores is not None:
        values = _vector("scores", scores)
        low, high = np.quantile(values, [0.02, 0.98])
        drawn = ax.scatter(points[:, 0], points[:, 1], c=values, vmin=low, vmax=high, cmap="viridis", **options)
        ax.figure.colorbar(drawn, ax=ax, label="score")
    else:
        ax.scatter(*points.T, color=ID_COLOUR, **options)
    ax.set(xlabel="first principal component", ylabel="second principal component", xticks=[], yticks=[])
    return ax


def ablation(
    results: Mapping[str, Sequence[float] | float], *, metric: str = "AUROC (%)", ax: Axes | None = None
) -> Axes:
    """Bars of variants with their spread over seeds, the best one stressed.

    Arguments:
        results: For each variant its figures, one a seed; higher is better.
        metric: What the figures are.
        ax: Axes to draw on; default: new ones.

    Example:
        >>> ax = ablation({"full": [99.0, 98.0], "without condition": [90.0, 94.0]})
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['full', 'without condition']
    """
    if not results:
        raise DegemError("there are no variants to draw: give at least one name with its figures")
    ax = _axes(ax)
    figures = [np.atleast_1d(np.asarray(values, dtype=np.float64)) for values in results.values()]
    means = np.array([values.mean() for values in figures])
    spreads = np.array([values.std(ddof=1) if len(values) > 1 else 0.0 for values in figures])
    colours = [OOD_COLOUR if row == means.argmax() else ID_COLOUR for row in range(len(means))]
    rows = np.arange(len(means))
    ax.barh(rows, means, xerr=spreads, color=colours, error_kw={"elinewidth": 1, "capsize": 3})
    for row, (mean, spread) in enumerate(zip(means, spreads, strict=True)):
        ax.annotate(f"{mean:.1f}", (mean + spread, row), xytext=(4, 0), textcoords="offset points", va="center")
    ax.set_yticks(rows, labels=list(results))
    ax.invert_yaxis()
    ax.set_xlabel(metric)
    ax.margins(x=0.12)
    return ax


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    with needs_extra("plot", "a figure"):
        import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _vector(name: str, values: ArrayLike) -> np.ndarray[Any, np.dtype[np.float64]]:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or len(vector) == 0 or not np.isfinite(vector).all():
        raise DegemError(f"{name} must be finite numbers, one a node, got shape {vector.shape}")
    return vector


def _truth(is_ood: ArrayLike, num_nodes: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    truth = np.asarray(is_ood).astype(np.bool_)
    if truth.shape != (num_nodes,):
        raise DegemError(f"is_ood has shape {truth.shape}, but there are {num_nodes} nodes")
    return truth


def _clipped(sample: ArrayLike, bins: ArrayLike) -> Any:
    edges = np.asarray(bins)
    return np.clip(sample, edges[0], edges[-1])


def _shares(sample: ArrayLike) -> Any:
    return np.full(np.size(sample), 1 / max(np.size(sample), 1))
