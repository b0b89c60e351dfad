"""Graphs from spoilt arrays, PyG data and NetworkX graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from degem import Graph
from fuzz.files import Attempt, expect
from fuzz.mutate import NUMBERS, VALUES, spoil_array

FEATURES = np.arange(12, dtype=np.float32).reshape(4, 3)
ADJACENCY = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]], dtype=np.float32)
FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]


def arrays(rng: Random, folder: Path) -> Attempt:
    """Arguments of ``Graph.from_arrays``, one or two of them spoilt."""
    arguments: dict[str, Any] = {
        "features": FEATURES,
        "labels": np.array([0, 1, -1, 0]),
        "node_ids": np.array(["a", "b", "c", "d"]),
        "feature_names": ["x", "y", "z"],
        "class_names": ["red", "blue"],
        "masks": {"train": np.array([True, False, True, False])},
        "columns": {"year": np.arange(4)},
    }
    if rng.random() < 0.5:
        arguments["edges"] = np.array([[0, 1], [1, 2], [2, 3]])
    else:
        arguments["adjacency"] = _sparse(rng, ADJACENCY)
    if rng.random() < 0.3:
        arguments["features"] = _sparse(rng, FEATURES)
    for name in rng.sample([*arguments, "num_nodes"], rng.randint(1, 2)):
        arguments[name] = _spoilt(rng, arguments.get(name, 4))
    if rng.random() < 0.2:
        arguments.pop(rng.choice(sorted(arguments)))

    def attempt() -> None:
        graph = Graph.from_arrays(**arguments)
        given = arguments.get("features")
        if given is not None:
            dense = given.toarray() if sp.issparse(given) else np.asarray(_plain(given))
            with np.errstate(over="ignore"):
                expect(np.array_equal(_dense(graph), dense.astype(np.float32)), "other features")
        _check_sound(graph)

    return attempt


def _plain(value: Any) -> Any:
    return value.detach().float().numpy() if isinstance(value, torch.Tensor) else value


def _dense(graph: Graph) -> np.ndarray:
    return graph.features.toarray() if sp.issparse(graph.features) else np.asarray(graph.features)


def _check_sound(graph: Graph) -> None:
    expect(np.isfinite(_dense(graph) if graph.num_features < 10_000 else graph.features.data).all(), "not finite")
    indices, indptr = graph.adjacency.indices, graph.adjacency.indptr
    expect(not len(indices) or (indices.min() >= 0 and indices.max() < graph.num_nodes), "edges outside")
    expect(indptr[0] == 0 and indptr[-1] == len(indices) and (np.diff(indptr) >= 0).all(), "indptr")
    expect(len(graph.labels) == len(graph.node_ids) == graph.num_nodes, "lengths")


def _sparse(rng: Random, dense: np.ndarray) -> Any:
    """A sparse matrix, some with index arrays that point elsewhere."""
    matrix = sp.coo_array(dense).asformat(rng.choice(FORMATS))
    if rng.random() < 0.5 and matrix.format in ("csr", "csc", "bsr"):
        part = rng.choice(["indptr", "indices", "data"])
        array = getattr(matrix, part).copy()
        if array.size and rng.random() < 0.7:
            array.reshape(-1)[rng.randrange(array.size)] = rng.choice([-1, 0, 9, 100_000, 2**31 - 1])
        else:
            array = array[: rng.randrange(len(array) + 1)]
        setattr(matrix, part, array)
        if rng.random() < 0.3:
            matrix.has_canonical_format = True
    elif rng.random() < 0.5 and matrix.format == "coo":
        matrix.coords = tuple(np.where(index == 1, rng.choice([-1, 4, 2**31 - 1]), index) for index in matrix.coords)
    return matrix


def _spoilt(rng: Random, value: Any) -> Any:
    if sp.issparse(value):
        return rng.choice(
            [sp.eye_array(4, dtype=complex), sp.eye_array(3), sp.coo_array((0, 4)), sp.csr_array(value.shape), None]
        )
    if isinstance(value, dict):
        name = next(iter(value))
        return rng.choice([{name: _spoilt(rng, value[name])}, [1], "x", {"\udc80": value[name]}, {1: value[name]}])
    choice = rng.randrange(6)
    if choice == 0:
        return rng.choice(VALUES + NUMBERS)
    if choice == 1:
        return np.array(value, dtype=object)
    if choice == 2:
        return np.ma.masked_array(np.array(value), mask=np.zeros(np.shape(value), dtype=bool))
    if choice == 3:
        array = np.array(value)
        return _tensor(rng, array) if array.dtype.kind in "iufb" else array
    if choice == 4 and np.ndim(value):
        return [*np.array(value).tolist(), rng.choice(VALUES)]
    return spoil_array(rng, np.array(value))


def _tensor(rng: Random, array: np.ndarray) -> Any:
    tensor = torch.from_numpy(np.array(array))
    makers: list[Callable[[], Any]] = [
        lambda: tensor.float().requires_grad_(),
        lambda: tensor.to(torch.bfloat16),
        lambda: tensor.to(torch.complex64),
        lambda: torch.empty(tensor.shape, device="meta"),
        lambda: tensor.to_sparse(),
        lambda: tensor.to_sparse_csr() if tensor.ndim == 2 else tensor,
        lambda: torch.quantize_per_tensor(tensor.float(), 0.1, 0, torch.qint8),
        lambda: tensor.float().conj().neg(),
        lambda: tensor[None],
        lambda: tensor.flatten(),
        lambda: torch.sparse_coo_tensor([[0, 99], [0, 1]], [1.0, 2.0], (4, 3), check_invariants=False),
        lambda: _forged_csr(rng),
        lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
        lambda: tensor.half() if tensor.dtype.is_floating_point else tensor.to(torch.uint8),
    ]
    return rng.choice(makers)()


def _forged_csr(rng: Random) -> torch.Tensor:
    matrix = torch.eye(4, 3).to_sparse_csr()
    part = matrix.col_indices() if rng.random() < 0.5 else matrix.crow_indices()
    part[rng.randrange(len(part))] = rng.choice([-1, 9, 10_000_000])
    return matrix


def pyg(rng: Random, folder: Path) -> Attempt:
    """A PyG ``Data`` with one or two parts spoilt."""
    parts: dict[str, Any] = {
        "x": torch.from_numpy(FEATURES.copy()),
        "edge_index": torch.tensor([[0, 1, 2], [1, 2, 3]]),
        "y": torch.tensor([0, 1, -1, 0]),
        "train_mask": torch.tensor([True, False, True, False]),
        "num_nodes": 4,
    }
    for name in rng.sample(list(parts), rng.randint(1, 2)):
        given = np.array(parts[name])
        parts[name] = rng.choice([lambda given=given: _tensor(rng, given), lambda given=given: _spoilt(rng, given)])()
    if rng.random() < 0.3:
        parts.pop(rng.choice(sorted(parts)))

    def attempt() -> None:
        data = Data()
        for name, part in parts.items():
            data._store[name] = part  # as a file would have it: PyG's own setters check some
        graph = Graph.from_pyg(data)
        _check_sound(graph)
        given = parts.get("x")
        if isinstance(given, torch.Tensor) and given.layout == torch.strided and given.dtype != torch.bfloat16:
            with np.errstate(over="ignore"):
                expect(
                    np.array_equal(_dense(graph), given.detach().resolve_neg().numpy().astype(np.float32)),
                    "other features",
                )

    return attempt


def networkx(rng: Random, folder: Path) -> Attempt:
    """A NetworkX graph of any class, its nodes, attributes and arguments spoilt."""
    made = rng.choice([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])()
    names: list[Any] = ["a", "b", "c", "d"]
    hashable = [value for value in VALUES if not isinstance(value, list | dict) and value is not None]
    if rng.random() < 0.4:
        names[rng.randrange(4)] = rng.choice([*hashable, (1, 2), 1])
    for name in names:
        made.add_node(name, x=rng.random(), label=rng.choice(["red", "blue"]))
    made.add_edges_from(
        [(names[0], names[1], {"weight": rng.choice(VALUES)}), (names[1], names[2]), (names[3], names[3])]
    )
    for _ in range(rng.randint(0, 2)):
        made.nodes[rng.choice(list(made.nodes))][rng.choice(["x", "label"])] = rng.choice(VALUES)
    attributes = rng.choice([["x"], ["x"], ["x"], None, ["x", "label"], ["gone"], "x", 3])
    label = rng.choice(["label", "label", None, "gone", "x"])
    given = made if rng.random() < 0.95 else rng.choice(VALUES)

    def attempt() -> None:
        graph = Graph.from_networkx(given, feature_attributes=attributes, label_attribute=label)
        _check_sound(graph)
        expect(graph.num_nodes == len(made), "another number of nodes")
        if attributes == ["x"]:
            with np.errstate(over="ignore"):
                values = np.array([made.nodes[name]["x"] for name in made.nodes], dtype=float).astype(np.float32)
            expect(np.array_equal(_dense(graph)[:, 0], values), "other features")

    return attempt
