"""Model folders: tensors as safetensors, everything else as JSON. Nothing is ever unpickled.

``model.json`` names the file of tensors by its checksum, so that replacing ``model.json``, one rename, replaces the
model: until then the old description and the old tensors lie side by side with the new ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from degem.errors import ModelFileError
from degem.files import STAGING, read_regular, replaced, sweep
from degem.ops.mapped import available_mib

FORMAT = "degem-model"
FORMAT_VERSION = 3
ABOUT = "model.json"
TENSORS = "state-*.safetensors"
LOCK = ".lock"
MAX_DESCRIPTION = 1 << 26  # bytes
HEX_64 = re.compile("[0-9a-f]{64}")
AGAIN = "fit and save the model again"


def write(path: Path, state: dict[str, torch.Tensor], about: dict[str, Any]) -> None:
    """Write a model folder; a crash on the way leaves the old model, or none.

    Arguments:
        path: The folder. One that is there already must be empty or hold a model, which is replaced.
        state: Named tensors.
        about: What else there is to know; must be JSON.
    """
    check_target(path)
    tensors = save_tensors({name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()})
    checksum = hashlib.sha256(tensors).hexdigest()
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": {package: version(package) for package in ("degem", "torch", "numpy")},
        "checksum": checksum,
        **about,
    }
    document = json.loads(json.dumps(document, default=_plain))  # what a reader will see
    document["about_checksum"] = _checksum(document)
    home = path / _tensors_name(checksum)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with FileLock(path / LOCK):  # two savers take turns; the system frees the lock of one that is killed
            sweep(path)
            with replaced(home) as file:
                file.write(tensors)
            with replaced(path / ABOUT) as file:
                file.write(json.dumps(document, indent=1).encode())
            for old in path.glob(TENSORS + "*"):
                if old != home:
                    old.unlink(missing_ok=True)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written: {error.strerror}") from None


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
    about = read_about(path)
    home = path / _tensors_name(about["checksum"])
    try:
        tensors = read_regular(home, int(available_mib() * 2**20))
    except OSError as error:
        raise ModelFileError(f"{home} cannot be read ({error.strerror}): {AGAIN}") from None
    if hashlib.sha256(tensors).hexdigest() != about["checksum"]:
        raise ModelFileError(f"{home} is truncated or altered (checksum differs): {AGAIN}")
    try:
        return load_tensors(tensors), about
    except SafetensorError as error:
        raise ModelFileError(f"{home} is not a safetensors file: {error}") from None


def read_about(path: Path) -> dict[str, Any]:
    """The description alone, without the tensors."""
    try:
        about = json.loads(read_regular(path / ABOUT, MAX_DESCRIPTION).decode("utf-8"))
    except FileNotFoundError:
        raise ModelFileError(
            f"{path} is not a model folder: it has no {ABOUT} (degem fit GRAPH --out MODEL makes one)"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: {ABOUT} cannot be read ({error}): {AGAIN}") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ModelFileError(f"{path}: {ABOUT} does not describe a degem model")
    if about.get("format_version") != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {about.get('format_version')}, this degem reads {FORMAT_VERSION}: "
            "install the degem that wrote it"
        )
    expected = about.pop("about_checksum", None)
    if _checksum(about) != expected:
        raise ModelFileError(f"{path}: {ABOUT} was altered (checksum differs): {AGAIN}")
    if not isinstance(about.get("checksum"), str) or not HEX_64.fullmatch(about["checksum"]):
        raise ModelFileError(f"{path}: {ABOUT} names no file of tensors: {AGAIN}")
    return about


def foreign(path: str | Path, method: str, expected: str) -> ModelFileError:
    """The error for a model of another method."""
    way_out = "use Detector.load" if expected != "Detector" else "import the module that defines the method first"
    return ModelFileError(f"{path} holds a {method!r} model, which {expected} cannot load: {way_out}")


def _tensors_name(checksum: str) -> str:
    return TENSORS.replace("*", checksum[:16])


def _checksum(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Settings and NumPy numbers as JSON knows them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a model file")
