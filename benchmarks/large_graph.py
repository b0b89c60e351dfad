"""A seeded graph of any size with planted classes, written to disk in blocks: the layout of ``degem.data.archives``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

NUM_CLASSES, NUM_FEATURES = 10, 128
ROUNDS, ROUNDS_ACROSS = 16, 4
KEPT = 20 / (2 * ROUNDS)  # of 32 possible neighbours 20 remain: ten edges a node
BLOCK = 1 << 17


def write_graph(folder: Path, num_nodes: int, *, seed: int = 0) -> None:
    """Write a graph of ``num_nodes`` nodes and about ten times as many edges, most of them within a class.

    Node i has class i mod 10. In each round, node i is joined with the image of i under an affine map, within its class
    or across all nodes, unless a hash of the pair says no; so any row can be made alone, and the graph is symmetric.
    """
    if num_nodes % NUM_CLASSES:
        raise ValueError(f"the number of nodes must be a multiple of {NUM_CLASSES}, got {num_nodes}")
    folder.mkdir(parents=True, exist_ok=True)
    labels = np.arange(num_nodes) % NUM_CLASSES
    np.save(folder / "labels.npy", labels)
    chance = np.random.default_rng([seed, 1]).random(num_nodes)
    np.save(folder / "mask_train.npy", chance < 0.1)
    np.save(folder / "mask_val.npy", (chance >= 0.1) & (chance < 0.2))
    _write_features(folder / "features.npy", labels, seed)
    _write_edges(folder, num_nodes, seed)


def _write_features(path: Path, labels: NDArray[np.int64], seed: int) -> None:
    centres = np.random.default_rng([seed, 2]).standard_normal((NUM_CLASSES, NUM_FEATURES), dtype=np.float32)
    with path.open("wb") as file:
        _write_header(file, np.float32, (len(labels), NUM_FEATURES))
        for start in range(0, len(labels), BLOCK):
            rows = labels[start : start + BLOCK]
            noise = np.random.default_rng([seed, 3, start]).standard_normal((len(rows), NUM_FEATURES), dtype=np.float32)
            (centres[rows] + 2 * noise).tofile(file)


def _write_edges(folder: Path, num_nodes: int, seed: int) -> None:
    indptr = np.zeros(num_nodes + 1, dtype=np.int32)
    with (folder / "indices.npy").open("wb") as file:
        _write_header(file, np.int32, (32 * num_nodes,))
        for start, neighbours in _neighbour_blocks(num_nodes, seed):
            known = neighbours < num_nodes
            indptr[start + 1 : start + 1 + len(neighbours)] = known.sum(axis=1)
            neighbours[known].tofile(file)
        np.cumsum(indptr, out=indptr)
        file.seek(0)
        _write_header(file, np.int32, (int(indptr[-1]),))
    np.save(folder / "indptr.npy", indptr)


def _neighbour_blocks(num_nodes: int, seed: int) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Blocks of rows: the sorted neighbours of each node, ``num_nodes`` in the place of those that are none."""
    maps = [_affine_map(num_nodes // NUM_CLASSES, NUM_CLASSES, seed, index) for index in range(ROUNDS - ROUNDS_ACROSS)]
    maps += [_affine_map(num_nodes, 1, seed, ROUNDS + index) for index in range(ROUNDS_ACROSS)]
    for start in range(0, num_nodes, BLOCK):
        nodes = np.arange(start, min(start + BLOCK, num_nodes), dtype=np.int64)
        found = np.empty((len(nodes), 2 * ROUNDS), dtype=np.int32)
        for index, (size, step, multiplier, inverse, shift) in enumerate(maps):
            place, rest = nodes // step, nodes % step
            images = (place * multiplier + shift) % size, (place - shift) % size * inverse % size
            for side, image in enumerate(images):
                other = image * step + rest
                drop = (other == nodes) | ~_kept(nodes, other, seed)
                found[:, 2 * index + side] = np.where(drop, num_nodes, other)
        found.sort(axis=1)
        found[:, 1:][found[:, 1:] == found[:, :-1]] = num_nodes
        found.sort(axis=1)
        yield start, found


def _affine_map(size: int, step: int, seed: int, index: int) -> tuple[int, int, int, int, int]:
    """Size, step, multiplier, its inverse and shift of i → (multiplier · i + shift) mod size."""
    rng = np.random.default_rng([seed, 4, index])
    while True:
        multiplier = int(rng.integers(1, size))
        if math.gcd(multiplier, size) == 1:
            return size, step, multiplier, pow(multiplier, -1, size), int(rng.integers(size))


def _kept(first: NDArray[np.int64], second: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
    """Whether a pair is an edge: a hash that does not know which of the two comes first."""
    low, high = np.minimum(first, second).astype(np.uint64), np.maximum(first, second).astype(np.uint64)
    mixed = (low * np.uint64(0x9E3779B97F4A7C15)) ^ (high * np.uint64(0xC2B2AE3D27D4EB4F)) ^ np.uint64(seed)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    kept: NDArray[np.bool_] = (mixed >> np.uint64(40)).astype(np.float64) / (1 << 24) < KEPT
    return kept


def _write_header(file: BinaryIO, dtype: type, shape: tuple[int, ...]) -> None:
    """The header of an ``.npy`` file; it has the same length for any shape that fits, so it can be written again."""
    about = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)
