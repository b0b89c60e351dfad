"""A function and what it is given, as bytes for a worker: large arrays stay in the store and are named there."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from degem.engine.store import Publisher, Store
from degem.extras import needs_extra

with needs_extra("ray", "the engine"):
    from ray.cloudpickle import CloudPickler

LARGE = 1 << 18  # bytes from which an array goes by way of the store


class _Packer(CloudPickler):
    def __init__(self, file: io.BytesIO, publisher: Publisher) -> None:
        super().__init__(file, protocol=5)  # type: ignore[no-untyped-call]
        self.publisher = publisher

    def persistent_id(self, value: Any) -> Any:
        """Where a large array lies; a single number that stands for all, as of edges without weights, stays one."""
        if not isinstance(value, np.ndarray) or value.dtype.hasobject or value.nbytes < LARGE:
            return None
        if not any(value.strides):
            return "same", value.flat[0].item(), value.dtype.str, value.shape
        return "stored", *self.publisher.place_of(value)

    def reducer_override(self, value: Any) -> Any:
        """Tensors as arrays."""
        if type(value) is torch.Tensor:
            return _tensor, (value.detach().cpu().numpy(), str(value.device))
        return super().reducer_override(value)  # type: ignore[no-untyped-call]


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, store: Store) -> None:
        super().__init__(file)
        self.store = store

    def persistent_load(self, place: Any) -> NDArray[Any]:
        kind, *what = place
        if kind == "stored":
            return self.store.array(what[0])
        value, dtype, shape = what
        return np.broadcast_to(np.dtype(dtype).type(value), shape)


def _tensor(array: NDArray[Any], device: str) -> torch.Tensor:
    return torch.from_numpy(np.array(array)).to(device)


def packed(value: Any, publisher: Publisher) -> bytes:
    """The bytes of a value; equal values have equal bytes."""
    file = io.BytesIO()
    _Packer(file, publisher).dump(value)  # type: ignore[no-untyped-call]
    return file.getvalue()


def unpacked(content: bytes, store: Store) -> Any:
    """The value again, its large arrays as memory maps. The bytes come from the driver by Ray, never out of a file."""
    return _Unpacker(io.BytesIO(content), store).load()
