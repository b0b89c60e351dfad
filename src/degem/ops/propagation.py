"""Propagation over the graph: one sparse × dense product a hop, no parameters."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from degem.ops.prefetch import LINE, prefetch

MAX_THREADS: int = vars(numba.config)["NUMBA_NUM_THREADS"]
MANY_VALUES, AHEAD = 1 << 23, 8  # beyond the caches, neighbours' values are asked for so many neighbours ahead


def propagate(
    adjacency: sp.csr_array,
    x: NDArray[np.float32],
    *,
    self_weight: float = 0.0,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    r"""One hop: :math:`S x` with :math:`S = \beta I + D^{-1/2} A D^{-1/2}`.

    Isolated nodes keep :math:`\beta x`. The result does not depend on the number of threads.

    Arguments:
        adjacency: The adjacency :math:`A`, symmetric, ones, no self-loops.
        x: Node values of shape :math:`(n, r)`, C-contiguous.
        self_weight: The weight :math:`\beta` of the node itself.
        out: Where to write, if not into a new array; may be a memory map.

    Example:
        >>> path = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
        >>> propagate(path, np.array([[0.0], [1.0], [0.0]], dtype=np.float32), self_weight=0.5).ravel()
        array([0.70710677, 0.5       , 0.70710677], dtype=float32)
    """
    out = np.empty_like(x) if out is None else out
    _hop(adjacency, True, self_weight, 1.0, x, out)
    return out


def hop_features(
    adjacency: sp.csr_array,
    x: NDArray[np.float32],
    num_hops: int,
    *,
    self_weight: float,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    r"""The hop features :math:`X^{(0)}, …, X^{(L)}`, :math:`X^{(\ell)} = S X^{(\ell-1)}`, of shape :math:`(L+1, n, r)`.

    Arguments:
        adjacency: The adjacency :math:`A`.
        x: The features :math:`X^{(0)}`, of shape :math:`(n, r)`.
        num_hops: The number of hops :math:`L`.
        self_weight: The weight :math:`\beta` of the node itself.
        out: Where to write, if not into a new array; may be a memory map.

    Example:
        >>> pair = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.float32))
        >>> hop_features(pair, np.array([[1.0], [0.0]], dtype=np.float32), 2, self_weight=0.0)[:, 0, 0]
        array([1., 0., 1.], dtype=float32)
    """
    hops = np.empty((num_hops + 1, *x.shape), dtype=np.float32) if out is None else out
    hops[0] = x
    for hop in range(num_hops):
        propagate(adjacency, hops[hop], self_weight=self_weight, out=hops[hop + 1])
    return hops


def smooth_over_neighbours(
    adjacency: sp.csr_array, values: NDArray[np.float32], *, weight: float, num_steps: int
) -> NDArray[np.float32]:
    r"""Averaging over neighbours, :math:`v \leftarrow (1 - w)\,v + w\,D^{-1}Av`, repeated; isolated nodes keep theirs.

    Arguments:
        adjacency: The adjacency :math:`A`.
        values: Node values of shape (n, columns); left as they are.
        weight: The weight :math:`w` of the neighbours.
        num_steps: How often.

    Example:
        >>> path = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
        >>> values = np.array([[0], [4], [8]], dtype=np.float32)
        >>> smooth_over_neighbours(path, values, weight=0.5, num_steps=1).ravel().round(3)
        array([2., 4., 6.], dtype=float32)
    """
    if weight == 0:
        return values
    smooth = np.ascontiguousarray(values, dtype=np.float32)
    for _ in range(num_steps):
        smooth = average(adjacency, smooth, self_weight=1 - weight, weight=weight)
    alone = np.diff(adjacency.indptr) == 0
    smooth[alone] = values[alone]
    return smooth


def average(
    adjacency: sp.csr_array,
    values: NDArray[np.float32],
    *,
    self_weight: float,
    weight: float = 1.0,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    r"""One step :math:`v \mapsto \beta v + w\,D^{-1} A v`; isolated nodes get :math:`\beta v`.

    It looks at neighbours' values alone. As :math:`S = D^{1/2} (\beta I + D^{-1} A) D^{-1/2}`, a walk of many hops does
    without each neighbour's degree, for which :func:`propagate` goes to memory: see :func:`root_degrees`.

    Arguments:
        adjacency: The adjacency :math:`A`.
        values: Node values :math:`v` of shape (n, columns), C-contiguous.
        self_weight: The weight :math:`\beta` of the node itself.
        weight: The weight :math:`w` of the neighbours.
        out: Where to write, if not into a new array.

    Example:
        >>> path = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
        >>> average(path, np.array([[1.0], [4.0], [5.0]], dtype=np.float32), self_weight=0.0).ravel()
        array([4., 3., 4.], dtype=float32)
    """
    out = np.empty_like(values) if out is None else out
    _hop(adjacency, False, self_weight, weight, values, out)
    return out


def root_degrees(adjacency: sp.csr_array) -> NDArray[np.float32]:
    r"""The diagonal of :math:`D^{1/2}`, of shape (n, 1), with 1 for isolated nodes.

    Example:
        >>> root_degrees(sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))).ravel()
        array([1.       , 1.4142135, 1.       ], dtype=float32)
    """
    return np.sqrt(np.maximum(np.diff(adjacency.indptr), 1).astype(np.float32))[:, None]


def match_threads() -> None:
    """Let numba's kernels use as many threads as PyTorch's, whose number stays.

    Both may compute by the same OpenMP library, and numba tells that its own number of threads when it starts.
    """
    wanted = torch.get_num_threads()
    numba.set_num_threads(min(wanted, MAX_THREADS))
    if torch.get_num_threads() != wanted:
        torch.set_num_threads(wanted)


def _hop(
    adjacency: sp.csr_array,
    symmetric: bool,
    self_weight: float,
    weight: float,
    x: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    r"""Write :math:`βx + w D^{-1/2} A D^{-1/2} x` where symmetric, else :math:`βx + w D^{-1} A x`."""
    match_threads()
    # Floats of Python: those of NumPy take longer to hand over.
    _hop_rows(adjacency.indptr, adjacency.indices, symmetric, float(self_weight), float(weight), x, out)


@numba.njit(parallel=True, cache=True, fastmath=True, nogil=True)
def _hop_rows(indptr: Any, indices: Any, symmetric: Any, self_weight: Any, weight: Any, x: Any, out: Any) -> None:
    # Neighbours one, two, then four at a time: a row of the result is loaded and stored a quarter as often. The loops
    # stand in the parallel one: in a function of their own the compiler makes slower ones of them.
    self_weight, weight, width = np.float32(self_weight), np.float32(weight), x.shape[1]
    scale = _scale(indptr, x.shape[0] if symmetric else 0)
    known = len(indices) if x.size > MANY_VALUES else 0
    for row in numba.prange(x.shape[0]):
        entry, end = indptr[row], indptr[row + 1]
        own = weight * scale[row] if symmetric else weight / np.float32(max(end - entry, 1))
        _ask(indices, x, entry + AHEAD, min(entry + AHEAD + (end - entry) % 4, known))
        if (end - entry) % 2:
            i = indices[entry]
            p = _times(own, scale, i)
            for c in range(width):
                out[row, c] = self_weight * x[row, c] + p * x[i, c]
            entry += 1
        else:
            for c in range(width):
                out[row, c] = self_weight * x[row, c]
        if (end - entry) % 4:
            i, j = indices[entry], indices[entry + 1]
            p, q = _times(own, scale, i), _times(own, scale, j)
            for c in range(width):
                out[row, c] += p * x[i, c] + q * x[j, c]
            entry += 2
        for four in range(entry, end, 4):
            _ask(indices, x, four + AHEAD, min(four + AHEAD + 4, known))
            i, j, k, m = indices[four], indices[four + 1], indices[four + 2], indices[four + 3]
            p, q, u, v = _times(own, scale, i), _times(own, scale, j), _times(own, scale, k), _times(own, scale, m)
            for c in range(width):
                out[row, c] += (p * x[i, c] + q * x[j, c]) + (u * x[k, c] + v * x[m, c])


@numba.njit(cache=True, fastmath=True)
def _scale(indptr: Any, rows: Any) -> Any:
    scale = np.empty(rows, dtype=np.float32)
    for row in range(rows):
        scale[row] = np.float32(1) / np.sqrt(np.float32(max(indptr[row + 1] - indptr[row], 1)))
    return scale


@numba.njit(cache=True)
def _ask(indices: Any, x: Any, first: Any, last: Any) -> None:
    for entry in range(first, last):
        for c in range(0, x.shape[1], LINE):
            prefetch(x, indices[entry], c)


@numba.njit(cache=True)
def _times(own: Any, scale: Any, other: Any) -> Any:
    return own * scale[other] if len(scale) else own
