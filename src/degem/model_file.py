"""Model folders: tensors as safetensors, everything else as JSON. Nothing is ever unpickled.

``model.json`` names the file of tensors by its checksum, so that replacing ``model.json``, one rename, replaces the
model: until then the old description and the old tensors lie side by side with the new ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from degem.errors import DegemError, ModelFileError, quoted
from degem.files import STAGING, memory_limit, not_written, read_regular, replaced, sweep

FORMAT = "degem-model"
FORMAT_VERSION = 5
DESCRIPTION = "model.json"
TENSORS = "state-*.safetensors"
LOCK = ".lock"
MAX_DESCRIPTION = 1 << 26  # bytes
PATIENCE = 60.0  # seconds to wait for another saver
AGAIN = "fit and save the model again"
Model = TypeVar("Model", bound=BaseModel)


class Description(BaseModel):
    """What ``model.json`` must say; a method may say more."""

    model_config = ConfigDict(extra="allow", strict=True)

    checksum: str = Field(pattern="^[0-9a-f]{64}$")
    versions: dict[str, str]


def write(path: Path, state: dict[str, torch.Tensor], metadata: dict[str, Any]) -> None:
    """Write a model folder; a crash on the way leaves the old model, or none.

    Arguments:
        path: The folder. One that is there already must be empty or hold a model, which is replaced.
        state: Named tensors.
        metadata: What else there is to know; must be JSON.
    """
    check_target(path)
    tensors = save_tensors({name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()})
    checksum = hashlib.sha256(tensors).hexdigest()
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": {package: version(package) for package in ("degem", "torch", "numpy")},
        "checksum": checksum,
        **metadata,
    }
    document = json.loads(json.dumps(document, default=_plain))  # what a reader will see
    document["about_checksum"] = checksum_of(document)
    target = path / _tensors_name(checksum)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with FileLock(path / LOCK, timeout=PATIENCE):  # two savers take turns; the lock of a killed one is free
            sweep(path, abandoned=0)
            with replaced(target) as file:
                file.write(tensors)
            with replaced(path / DESCRIPTION) as file:
                file.write(json.dumps(document, indent=1).encode())
            for old in path.glob(TENSORS + "*"):
                if old != target:
                    old.unlink(missing_ok=True)
    except Timeout:
        raise ModelFileError(f"{path} is being written by another process: try again") from None
    except OSError as error:
        raise ModelFileError(not_written(path, error)) from None
    except DegemError as error:
        raise ModelFileError(error) from None


def check_target(path: Path) -> None:
    """Refuse to write a model over anything that is not one."""
    ours = path.is_dir() and (
        all(entry.name == LOCK or entry.name.startswith(STAGING) for entry in path.iterdir())
        or any(path.glob(TENSORS + "*"))
    )
    if path.exists() and not ours:
        raise ModelFileError(f"{path} exists and is not a model folder: choose another path or remove it")


def read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors and the description of a model folder; anything wrong with it is a :class:`ModelFileError`."""
    metadata = read_metadata(path)
    target = path / _tensors_name(metadata["checksum"])
    try:
        tensors = read_regular(target, memory_limit())
    except FileNotFoundError:
        if read_metadata(path)["checksum"] != metadata["checksum"]:
            return read(path)  # saved anew in this very moment
        raise ModelFileError(f"{target} cannot be read (it is missing): {AGAIN}") from None
    except OSError as error:
        raise ModelFileError(f"{target} cannot be read ({error.strerror}): {AGAIN}") from None
    if hashlib.sha256(tensors).hexdigest() != metadata["checksum"]:
        raise ModelFileError(f"{target} is truncated or altered (checksum differs): {AGAIN}")
    try:
        return load_tensors(tensors), metadata
    except (SafetensorError, KeyError, ValueError) as error:  # KeyError: a type that PyTorch has no name for
        raise ModelFileError(f"{target} is not a safetensors file: {error}") from None


def read_metadata(path: Path) -> dict[str, Any]:
    """The description alone, without the tensors."""
    try:
        metadata = json.loads(read_regular(path / DESCRIPTION, MAX_DESCRIPTION).decode("utf-8"))
    except FileNotFoundError:
        raise ModelFileError(
            f"{path} is not a model folder: it has no {DESCRIPTION} (degem fit GRAPH --out MODEL makes one)"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: {DESCRIPTION} cannot be read ({error}): {AGAIN}") from None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path}: {DESCRIPTION} does not describe a degem model")
    if metadata.get("format_version") != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {metadata.get('format_version')}, this degem reads {FORMAT_VERSION}: "
            "install the degem that wrote it"
        )
    expected = metadata.pop("about_checksum", None)
    if checksum_of(metadata) != expected:
        raise ModelFileError(f"{path}: {DESCRIPTION} was altered (checksum differs): {AGAIN}")
    return metadata | checked(path, Description, metadata).model_dump()


def checked(path: str | Path, kind: type[Model], metadata: dict[str, Any]) -> Model:
    """A description parsed into a type; the first thing that does not fit is a :class:`ModelFileError`."""
    try:
        return kind.model_validate(metadata)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise ModelFileError(f"{path}: {DESCRIPTION}: {quoted(place)}: {problem['msg']}: {AGAIN}") from None


def tensor_of(state: dict[str, torch.Tensor], name: str, dtype: torch.dtype, *shape: int | None) -> torch.Tensor:
    """A tensor of a model file, if it is there with that type and shape.

    Arguments:
        state: The tensors of the file.
        name: Its name.
        dtype: The type it must have.
        shape: The size of each dimension; None for any.

    Example:
        >>> tensor_of({"bank": torch.ones(3, 2)}, "bank", torch.float32, None, 2).shape
        torch.Size([3, 2])
    """
    if name not in state:
        raise ModelFileError(f"the model file lacks the tensor {quoted(name)}: fit and save the model again")
    tensor = state[name]
    fits = len(tensor.shape) == len(shape) and all(
        size in (None, found) for size, found in zip(shape, tensor.shape, strict=True)
    )
    if tensor.dtype != dtype or not fits:
        raise ModelFileError(
            f"the model file's tensor {quoted(name)} is {tensor.dtype} of shape {tuple(tensor.shape)}, "
            f"its method needs {dtype} of shape {shape}: fit and save the model again"
        )
    if not tensor.isfinite().all():
        raise ModelFileError(f"the model file's tensor {quoted(name)} holds NaN or infinities: fit it again")
    return tensor


def tensors_of(arrays: Mapping[str, NDArray[Any] | None]) -> dict[str, torch.Tensor]:
    """Named arrays as named tensors, those that are None left out."""
    return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items() if array is not None}


def foreign(path: str | Path, method: str, expected: str) -> ModelFileError:
    """The error for a model of another method."""
    way_out = "use Detector.load" if expected != "Detector" else "import its class first (--detector-class)"
    return ModelFileError(f"{path} holds a {quoted(method)} model, which {expected} cannot load: {way_out}")


def _tensors_name(checksum: str) -> str:
    return TENSORS.replace("*", checksum[:16])


def checksum_of(document: dict[str, Any]) -> str:
    """The SHA-256 of a JSON document."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Settings and NumPy numbers as JSON knows them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a model file")
