"""``degem info``: what a model folder holds."""

from __future__ import annotations

from typing import Any

from degem.cli import options
from degem.cli.common import print_json, print_table


def info(model: options.ModelArgument, as_json: options.AsJson = False) -> None:
    """Say what MODEL is: method, parameters, data it was fitted on, calibration, versions.

    Example: degem info model --json
    """
    from degem import model_file
    from degem.detectors.restoring import Stored

    state, metadata = model_file.read(model)
    schema = model_file.checked(model, Stored, metadata).table_schema
    document: dict[str, Any] = {
        "method": metadata["method"],
        "parameters": metadata["parameters"],
        "features": metadata["num_features"],
        "columns": {} if schema is None else schema.descriptions(),
        "classes": metadata["class_names"] or metadata["classes"],
        "training_nodes": metadata["num_training_nodes"],
        "calibration_nodes": len(state.get("calibration.scores", ())),
        "weights": sum(tensor.numel() for name, tensor in state.items() if name.startswith("model.")),
        "versions": metadata["versions"],
        "format_version": metadata["format_version"],
    }
    if as_json:
        print_json(document)
    else:
        print_table(("", ""), _flat(document), texts=2)


def _flat(document: dict[str, Any], indent: str = "") -> list[tuple[str, str]]:
    """Rows of names and values, nested ones indented under theirs."""
    rows = []
    for name, value in document.items():
        if isinstance(value, dict):
            rows += [(indent + name, ""), *_flat(value, indent + "  ")]
        else:
            rows.append((indent + name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return rows
