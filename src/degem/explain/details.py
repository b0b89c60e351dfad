"""What a node has, against what is usual, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from degem.calibration.conformal import conformal_p_values
from degem.explain.columns import USUAL, Column
from degem.explain.setting import Setting


def column_detail(setting: Setting, column: Column, values: NDArray[np.floating[Any]]) -> str:
    """What a node has in a column."""
    rows = setting.features[:, column.positions]
    return f"{column.told(values[column.positions])}, usual {column.usual(rows)}"


def size_detail(setting: Setting, values: NDArray[np.floating[Any]]) -> str:
    """How many features of a node are not zero."""
    low, high = np.quantile((setting.features != 0).sum(axis=1), USUAL)
    return f"{np.count_nonzero(values):,} not zero, usual {low:.4g} – {high:.4g}"


def degree_detail(setting: Setting, node: int) -> str:
    """How many neighbours a node has."""
    degrees = setting.judged.whole.degrees
    low, high = np.quantile(degrees[setting.ordinary], USUAL)
    return f"{degrees[node]:,}, usual {low:.4g} – {high:.4g}"


def neighbour_detail(setting: Setting, neighbour: int) -> str:
    """Which class a neighbour is predicted to have, and how usual it is."""
    scored = setting.judged.scored.of(np.array([neighbour]))
    p = f"p {conformal_p_values(setting.judged.calibration_scores, scored.scores)[0]:.2g}"
    return p if scored.probabilities is None else f"class {setting.class_names[scored.probabilities.argmax()]}, {p}"
