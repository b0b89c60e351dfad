"""How detectors and explanations show themselves in a notebook."""

from __future__ import annotations

import dataclasses
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from degem.detectors.base import Detector
    from degem.detectors.explanation import Explanation


def detector_html(detector: Detector) -> str:
    """What a detector is, whether it is fitted, and the parameters that differ from their defaults."""
    kind = type(detector)
    standard = {field.name: _default(field) for field in dataclasses.fields(detector)}
    values = detector.get_params(deep=False)
    changed = {name: value for name, value in values.items() if value != standard[name]}
    facts: dict[str, Any] = {"paper": kind.paper, "fitted": hasattr(detector, "calibration_scores_")}
    if facts["fitted"]:
        facts |= {
            "fitted": f"on {detector.num_training_nodes_:,} nodes with {detector.num_features_:,} features",
            "calibrated": f"on {len(detector.calibration_scores_):,} held-out nodes",
        }
    facts |= {"changed parameters": ", ".join(f"{name}={value!r}" for name, value in changed.items()) or "none"}
    return _table(kind.__name__, facts)


def explanation_html(explanation: Explanation) -> str:
    """An explanation as a small table."""
    facts: dict[str, Any] = {
        "score": f"{explanation.score:.4g} (typical {explanation.typical_score:.4g})",
        "p-value": f"{explanation.p_value:.3g}",
        "why": explanation.summary,
    }
    facts |= {f"hop {hop}": f"{part:+.4g}" for hop, part in enumerate(explanation.hop_parts)}
    if explanation.features:
        facts["features"] = ", ".join(f"{feature.name} ({feature.part:+.3g})" for feature in explanation.features)
    if explanation.nearest:
        facts["nearest"] = ", ".join(f"{node.node_id} ({node.distance:.3g})" for node in explanation.nearest)
    return _table(f"node {explanation.node_id}", facts)


def _table(title: str, facts: dict[str, Any]) -> str:
    left = 'style="text-align:left"'
    rows = "".join(
        f"<tr><th {left}>{escape(str(name))}</th><td {left}>{escape(str(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption><b>{escape(title)}</b></caption><tbody>{rows}</tbody></table>"


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default
