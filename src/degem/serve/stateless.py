"""A subgraph in a request, scored by itself: Open Inference Protocol v2 in, and out."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from degem.calibration import Judged, ScoreResult
from degem.detectors.base import Detector
from degem.errors import DegemError, GraphNotice
from degem.explain import explain
from degem.graph import Graph
from degem.serve.events import Number
from degem.serve.limits import Limits, RefusedError
from degem.serve.service import Service

MOST_EXPLAINED = 20
NORMALISATION = (
    "no degrees were given: nodes at the border of the subgraph are taken to have no edges but those in it, so their "
    "rows, and those of nodes near them, are normalised by too small degrees"
)
Flat = Annotated[list[Number], Field()]


class Tensor(BaseModel):
    """A named tensor: features (n, d), edges (m, 2) of places in it, their weights (m), and the true degrees (n)."""

    model_config = ConfigDict(extra="ignore")

    name: Literal["features", "edges", "weights", "degrees"]
    shape: Annotated[list[Annotated[int, Field(ge=0, lt=2**31)]], Field(min_length=1, max_length=2)]
    datatype: Literal["FP32", "FP64", "INT32", "INT64"]
    data: Flat | list[Flat]


class Parameters(BaseModel):
    """How to judge: the false-alarm rate, and whether to say why."""

    model_config = ConfigDict(extra="ignore")

    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    explain: bool = False


class Inference(BaseModel):
    """A request of Open Inference Protocol v2."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "example": {
                "inputs": [
                    {"name": "features", "shape": [2, 3], "datatype": "FP32", "data": [0, 1, 0.5, 1, 0, 0.5]},
                    {"name": "edges", "shape": [1, 2], "datatype": "INT64", "data": [0, 1]},
                    {"name": "degrees", "shape": [2], "datatype": "INT64", "data": [1, 17]},
                ],
                "parameters": {"alpha": 0.05},
            }
        },
    )

    id: Annotated[str, Field(max_length=200)] | None = None
    inputs: Annotated[list[Tensor], Field(min_length=1, max_length=4)]
    parameters: Parameters = Parameters()


def infer(service: Service, asked: Inference, limits: Limits) -> dict[str, Any]:
    """Score a subgraph beside the calibration nodes as they score in the server's graph now."""
    graph, degrees = _subgraph(asked, limits, service.detector)
    now, told = service.snapshot, []
    if degrees is None:
        told.append(NORMALISATION)
    elif now.scoring.refresh == "full":
        told.append(f"{service.detector.name} takes degrees from the subgraph alone: those given are not used")
    found = now.scoring.score(graph, degrees, now.scored)
    p_values = found.p_values()
    alpha = asked.parameters.alpha or service.settings.alpha
    outputs = [
        _tensor("scores", "FP64", found.scores),
        _tensor("p_values", "FP64", p_values),
        _tensor("flags", "BOOL", p_values <= alpha),
    ]
    if found.classes is not None and found.chances is not None:
        names = np.array(service.class_names, dtype=object)[found.classes]
        outputs += [_tensor("classes", "BYTES", names), _tensor("class_probabilities", "FP64", found.chances)]
    parameters: dict[str, Any] = {"event": now.event, "alpha": alpha, "warnings": told}
    if asked.parameters.explain:
        if graph.num_nodes > MOST_EXPLAINED:
            raise RefusedError(422, f"explanations are for at most {MOST_EXPLAINED} nodes: send a smaller subgraph")
        everything = np.arange(graph.num_nodes)
        result = ScoreResult(found.scores, None, found.terms)
        calibration = dataclasses.replace(service.detector.calibration_, scores=found.calibration)
        judged = Judged(graph, everything, graph, result, calibration, None)
        explained = explain(service.detector, graph, everything, judged=judged)
        parameters["explanations"] = [_plain(each.to_dict()) for each in explained]
    name, version = service.detector.name, service.version
    response = {"model_name": name, "model_version": version, "outputs": outputs, "parameters": parameters}
    return response | ({} if asked.id is None else {"id": asked.id})


def _subgraph(asked: Inference, limits: Limits, detector: Detector) -> tuple[Graph, NDArray[np.float32] | None]:
    tensors = {tensor.name: tensor for tensor in asked.inputs}
    if len(tensors) < len(asked.inputs) or "features" not in tensors:
        raise RefusedError(422, "inputs must hold features, and may hold edges, weights and degrees, each once")
    features = _array(tensors["features"], 2)
    edges = _array(tensors["edges"], 2) if "edges" in tensors else np.empty((0, 2))
    if len(features) > limits.nodes or len(edges) > limits.edges:
        raise RefusedError(
            413, f"a subgraph has at most {limits.nodes:,} nodes and {limits.edges:,} edges: send a smaller one"
        )
    if features.shape[1] != detector.num_features_:
        raise RefusedError(422, f"features have {features.shape[1]} columns, the model has {detector.num_features_}")
    if edges.shape[1] != 2 or (edges != np.floor(edges)).any():
        raise RefusedError(422, "edges must be pairs of whole numbers, of shape (m, 2)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GraphNotice)
            weights = _array(tensors["weights"], 1) if "weights" in tensors else None
            graph = Graph.from_arrays(features=features, edges=edges.astype(np.int64), edge_weights=weights)
            graph = graph if detector.weighted_ else graph.unweighted()
    except DegemError as error:
        raise RefusedError(422, str(error)) from None
    if "degrees" not in tensors:
        return graph, None
    degrees = _array(tensors["degrees"], 1).astype(np.float32)
    if degrees.shape != (graph.num_nodes,) or (degrees < graph.strengths * (1 - 1e-6)).any():
        raise RefusedError(422, "degrees must be one number a node, none smaller than the sum of its edges here")
    return graph, degrees


def _array(tensor: Tensor, dimensions: int) -> NDArray[np.float64]:
    try:
        array = np.array(tensor.data, dtype=np.float64).reshape(tensor.shape)
    except ValueError:
        raise RefusedError(422, f"{tensor.name}: the data does not have the shape {tensor.shape}") from None
    if array.ndim != dimensions:
        raise RefusedError(422, f"{tensor.name} must have {dimensions} dimensions, got {array.ndim}")
    return array


def _tensor(name: str, datatype: str, values: NDArray[Any]) -> dict[str, Any]:
    return {"name": name, "shape": [len(values)], "datatype": datatype, "data": values.tolist()}


def _plain(value: Any) -> Any:
    """NaN as None, all the way down."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if value != value else value
