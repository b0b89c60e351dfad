"""The page of two windows: has the graph drifted?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from degem.compare import Comparison, GroupShare
from degem.files import write_text
from degem.report import figures, tallies
from degem.report.figures import Figure, rounded
from degem.report.html import fill


def write_comparison(
    comparison: Comparison, path: str | Path, *, level: float = 0.01, title: str = "Has the graph drifted?"
) -> None:
    """Write the comparison of two windows as one HTML file that needs no network.

    Arguments:
        comparison: What :func:`degem.compare.compare` found.
        path: The file to write.
        level: The level at which the page speaks of drift.
        title: The page's title.
    """
    write_text(path, fill("comparison", title, comparison_data(comparison, level)))


def comparison_data(comparison: Comparison, level: float) -> dict[str, Any]:
    """All that the page shows, as plain data."""
    found = tallies.histogram([comparison.calibration_scores, comparison.reference_scores, comparison.current_scores])
    names = ["calibration nodes", "reference window", "current window"]
    return {
        "drifted": comparison.drifted(level),
        "pValue": comparison.p_value,
        "level": level,
        "alpha": comparison.alpha,
        "sizes": [len(comparison.reference_scores), len(comparison.current_scores)],
        "tests": [[test.name, *rounded([test.reference, test.current, test.p_value])] for test in comparison.tests],
        "histogram": figures.score_histogram(found, names, ["@ink", "@id", "@ood"]),
        "drifts": [
            [drift.kind, drift.name, drift.reference, drift.current, *rounded([drift.effect], 2)]
            for drift in comparison.drifts
        ],
        "breakdowns": [
            {"title": f"by {name}", "figure": _paired_bars(name, shares), "rows": _rows(shares)}
            for name, shares in comparison.breakdowns.items()
        ],
    }


def _paired_bars(name: str, shares: Sequence[GroupShare]) -> Figure:
    figure = figures.group_bars(
        name, [share.name for share in shares], np.array([share.reference_size for share in shares])
    )
    second = figures.group_bars(
        name, [share.name for share in shares], np.array([share.current_size for share in shares])
    )
    (reference,), (current,) = figure["data"], second["data"]
    reference |= {"x": rounded([share.reference_share for share in shares]), "name": "reference window"}
    current |= {"x": rounded([share.current_share for share in shares]), "name": "current window"}
    reference["marker"] = {"color": "@id"}
    figure["layout"] |= {"barmode": "group", "showlegend": True, "height": 130 + 34 * len(shares)}
    return figure | {"data": [reference, current], "alt": f"Share flagged in both windows, by {name}."}


def _rows(shares: Sequence[GroupShare]) -> list[list[Any]]:
    return [
        [share.name, share.reference_size, share.current_size, *rounded([share.reference_share, share.current_share])]
        for share in shares
    ]
