"""``degem trust``: how likely each predicted class is wrong."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from degem.cli import options
from degem.cli.common import STDOUT, answer, check_table_out, write_table
from degem.cli.score import judged_ids
from degem.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from degem import Detector, Graph


@options.takes_inputs
def trust(
    model: options.ModelArgument,
    graph: options.GraphArgument,
    out: options.TableOut,
    mkdir: options.Mkdir = False,
    new_since: options.NewSince = None,
    nodes: options.Nodes = None,
    *,
    inputs: options.Inputs,
    as_json: options.AsJson = False,
) -> None:
    """Tell for every node of GRAPH how likely its predicted class is wrong, be the node out-of-distribution or not.

    The table has one row a node: node_id, error_chance, predicted_class, class_probability, p_value. With --logits the
    errors are those of your own network; else of MODEL's classifier.

    Example: degem trust model march/ --new-since february/ --out trust.csv
    """
    check_table_out(out, mkdir, as_json)
    detector = inputs.detector(model)
    loaded, logits = _read(graph, detector, inputs)
    table = detector.trust(loaded, logits=logits, only=judged_ids(loaded, detector, model, inputs, new_since, nodes))
    write_table(table, out)
    chances = table["error_chance"].sort_values()
    wrong: dict[str, Any] = {"all": chances.mean(), "trusted_half": chances[: (len(chances) + 1) // 2].mean()}
    answer(
        {"table": str(out), "nodes": len(table), "expected_wrong": wrong},
        as_json,
        f"{wrong['all']:.1%} of {len(table):,} predicted classes are expected to be wrong, "
        f"{wrong['trusted_half']:.1%} of the half that is trusted most: {out}",
        err=out == STDOUT,
    )


def _read(name: str, detector: Detector, inputs: options.Inputs) -> tuple[Graph, NDArray[np.float32] | None]:
    """The graph, and logits of another classifier than the model's, if there are such."""
    from degem.data.outputs import num_logits, read_outputs

    if inputs.logits is None or num_logits(detector.feature_names_) is not None:
        return inputs.graph(name, model=detector), None
    graph = dataclasses.replace(inputs, logits=None).graph(name, model=detector)
    logits, columns = read_outputs(inputs.logits, graph)
    known = detector.class_names_
    if columns is None or known is None:
        return graph, logits
    if set(columns) != set(known):
        odd = min(set(columns) ^ set(known))
        raise ParameterError(f"{inputs.logits}: its columns must be the model's classes, and {odd!r} is in one alone")
    return graph, logits[:, [columns.index(name) for name in known]]
