"""The page's figures as Plotly specifications: plain data, layout and the text that stands in for the picture.

Colours are names such as ``@ood``; the page looks them up in its style sheet, so that one figure serves light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from degem.report.tallies import Histogram
from degem.report.truth import Curves, Metric

Figure = dict[str, Any]


def rounded(values: ArrayLike, digits: int = 4) -> list[float | None]:
    """Numbers with few significant digits, as JSON can hold them.

    Example:
        >>> rounded([0.123456, float("inf")])
        [0.1235, None]
    """
    flat = np.asarray(values, dtype=np.float64)
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in flat.tolist()]


def score_histogram(found: Histogram, names: Sequence[str], colours: Sequence[str]) -> Figure:
    """Shares of nodes by score: bars, and a line for the first sample, which the others are held against."""
    centres = (found.edges[:-1] + found.edges[1:]) / 2
    traces: list[dict[str, Any]] = []
    for name, colour, shares in zip(names[1:], colours[1:], found.shares[1:], strict=True):
        bars = {"type": "bar", "name": name, "opacity": 0.65, "marker": {"color": colour, "line": {"width": 0}}}
        traces.append(bars | {"x": rounded(centres, 6), "y": rounded(shares)})
    line = _line(rounded(centres, 6), rounded(found.shares[0]), names[0], colours[0])
    traces.append(line | {"line": {"color": colours[0], "width": 2, "shape": "hvh"}})
    for trace in traces:
        trace["hovertemplate"] = f"score %{{x:.4g}}<br>%{{y:.2%}} of {_plain(trace['name'])}<extra></extra>"
    middles = [centres[int(np.searchsorted(shares.cumsum(), 0.5 - 1e-9))] for shares in found.shares]
    said = "; ".join(f"{name}: median about {middle:.4g}" for name, middle in zip(names, middles, strict=True))
    layout = {
        "barmode": "overlay",
        "bargap": 0,
        "xaxis": {"title": {"text": "score (higher = more OOD)"}},
        "yaxis": {"title": {"text": "share of nodes"}, "tickformat": ".0%"},
    }
    return {"data": traces, "layout": layout, "alt": f"Histogram of scores. {said}."}


def p_value_plot(p_values: NDArray[np.float64]) -> Figure:
    """The share of nodes flagged at each false-alarm rate, beside what in-distribution nodes alone would give."""
    rates = np.unique(np.concatenate([np.geomspace(0.001, 0.1, 40), np.linspace(0.1, 1, 91)]))
    shares = np.searchsorted(np.sort(p_values), rates, side="right") / max(len(p_values), 1)
    at_5 = float((p_values <= 0.05).mean()) if len(p_values) else 0.0
    traces = [
        _line([0, 1], [0, 1], "if all nodes were in-distribution", "@muted", dash="dash"),
        _line(rounded(rates), rounded(shares), "this graph", "@ood"),
    ]
    traces[1]["hovertemplate"] = "at a false-alarm rate of %{x:.3f}<br>%{y:.1%} are flagged<extra></extra>"
    layout = {
        "xaxis": {"title": {"text": "false-alarm rate α (p-value ≤ α)"}, "range": [0, 1]},
        "yaxis": {"title": {"text": "share flagged"}, "range": [0, 1.02], "tickformat": ".0%"},
    }
    alt = (
        f"Share of nodes with a p-value below α against α. At α = 5 % it is {at_5:.1%}; ID nodes alone would give 5 %."
    )
    return {"data": traces, "layout": layout, "alt": alt}


def group_bars(title: str, labels: Sequence[str], sizes: NDArray[np.int64]) -> Figure:
    """Share flagged by group; the page fills in the heights at the slider's position."""
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(labels))),
        "x": [0.0] * len(labels),
        "customdata": [[_plain(label), int(size)] for label, size in zip(labels, sizes, strict=True)],
        "hovertemplate": "%{customdata[0]}: %{x:.1%} of %{customdata[1]:,} nodes<extra></extra>",
        "marker": {"color": "@ood"},
    }
    layout = {
        "height": 90 + 24 * len(labels),
        "showlegend": False,
        "xaxis": {"title": {"text": "share flagged"}, "tickformat": ".0%", "rangemode": "tozero"},
        "yaxis": {
            "autorange": "reversed",
            "automargin": True,
            "tickvals": list(range(len(labels))),
            "ticktext": [_plain(_short(label)) for label in labels],
        },
    }
    return {"data": [trace], "layout": layout, "alt": f"Bars: share of nodes flagged, by {title}."}


def latent_map(points: NDArray[np.floating[Any]], kind: str) -> Figure:
    """The latents in two dimensions; the page colours the points by score, class or flag."""
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": rounded(points[:, 0]),
        "y": rounded(points[:, 1]),
        "marker": {"size": 6, "opacity": 0.75, "line": {"width": 0}},
        "hoverinfo": "text",
    }
    axis = {"showticklabels": False, "zeroline": False}
    layout = {
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": "pan",
        "xaxis": {"title": {"text": f"{kind} 1"}} | axis,
        "yaxis": {"title": {"text": f"{kind} 2"}} | axis,
    }
    return {
        "data": [trace],
        "layout": layout,
        "alt": f"Map of {len(points):,} nodes in two dimensions ({kind} of the latents).",
    }


def roc(found: Curves, metric: Metric) -> Figure:
    """The ROC curve; the page marks the threshold."""
    titles = ("share of ID nodes flagged", "share of OOD nodes flagged")
    return _curve(found.false_alarms, found.recall, [0, 1], titles, f"ROC curve, area {metric.value:.3f}.")


def precision_recall(found: Curves, base_rate: float, metric: Metric) -> Figure:
    """The precision–recall curve with OOD as the class to find; the page marks the threshold."""
    titles, alt = ("recall: share of OOD nodes flagged", "precision: share of flags right"), "Precision–recall curve"
    return _curve(found.recall, found.precision, [base_rate] * 2, titles, f"{alt}, area {metric.value:.3f}.")


def risk_coverage_plot(curves: Mapping[str, NDArray[np.float64]]) -> Figure:
    """The share of wrong predictions among the most trusted nodes, against how many of them; the first is dashed."""
    traces: list[dict[str, Any]] = []
    said = []
    for name, curve, colour in zip(curves, curves.values(), ("@muted", "@ood", "@id"), strict=False):
        points = np.unique(np.linspace(0, len(curve) - 1, 300).round().astype(int))
        coverage = (points + 1) / len(curve)
        title = f"{name}, area {curve.mean():.3f}"
        traces.append(_line(rounded(coverage), rounded(curve[points]), title, colour, "solid" if traces else "dash"))
        traces[-1]["hovertemplate"] = "of the %{x:.0%} most trusted<br>%{y:.1%} are wrong<extra></extra>"
        said.append(title)
    layout = {
        "xaxis": {"title": {"text": "share of nodes kept, most trusted first"}, "range": [0, 1], "tickformat": ".0%"},
        "yaxis": {"title": {"text": "share of them wrong"}, "rangemode": "tozero", "tickformat": ".0%"},
    }
    return {"data": traces, "layout": layout, "alt": f"Risk–coverage curves: {'; '.join(said)}."}


def training_curve(history: Mapping[str, Sequence[float]]) -> Figure | None:
    """Losses by step, thinned; None where the method has no training steps."""
    losses = {name: values for name, values in history.items() if name != "seconds" and len(values) > 1}
    if not losses:
        return None
    traces = []
    for index, (name, values) in enumerate(losses.items()):
        steps = np.unique(np.linspace(0, len(values) - 1, 300).round().astype(int))
        heights = np.asarray(values, dtype=np.float64)[steps]
        traces.append(_line(steps.tolist(), rounded(heights), name, f"@series{index % 6}"))
    layout = {"xaxis": {"title": {"text": "step"}}, "yaxis": {"title": {"text": "loss"}}}
    said = "; ".join(f"{name} from {values[0]:.3g} to {values[-1]:.3g}" for name, values in losses.items())
    return {"data": traces, "layout": layout, "alt": f"Training curves: {said}."}


def _line(x: Sequence[Any], y: Sequence[Any], name: str, colour: str, dash: str = "solid") -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "y": list(y),
        "name": _plain(name),
        "line": {"color": colour, "dash": dash, "width": 2},
        "hovertemplate": "%{x:.4g}, %{y:.4g}",
    }


def _curve(x: ArrayLike, y: ArrayLike, chance: list[float], titles: tuple[str, str], alt: str) -> Figure:
    """A detector's curve beside that of chance; the page moves the marker to the threshold."""
    marker = {
        "type": "scatter",
        "mode": "markers",
        "x": [None],
        "y": [None],
        "name": "threshold",
        "marker": {"color": "@ink", "size": 11, "symbol": "diamond"},
        "hovertemplate": "at the threshold: %{x:.1%}, %{y:.1%}<extra></extra>",
    }
    traces = [
        _line([0, 1], chance, "chance", "@muted", dash="dash"),
        _line(rounded(x), rounded(y), "detector", "@ood"),
        marker,
    ]
    layout = {
        "xaxis": {"title": {"text": titles[0]}, "range": [-0.01, 1], "tickformat": ".0%"},
        "yaxis": {"title": {"text": titles[1]}, "range": [0, 1.02], "tickformat": ".0%"},
    }
    return {"data": traces, "layout": layout, "alt": alt}


def _plain(text: str) -> str:
    """Text that Plotly, which understands some HTML, shows as it is."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _short(text: str, length: int = 28) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
