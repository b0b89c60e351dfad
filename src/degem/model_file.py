"""Model folders: tensors as safetensors, everything else as JSON. Nothing is ever unpickled."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from degem.errors import ModelFileError

FORMAT = "degem-model"
FORMAT_VERSION = 1
TENSORS, ABOUT = "state.safetensors", "model.json"


def write(path: Path, state: dict[str, torch.Tensor], about: dict[str, Any]) -> None:
    """Write a model folder; a crash on the way leaves the old one, or none.

    Arguments:
        path: The folder. One that is there already is replaced only if it holds a model.
        state: Named tensors.
        about: What else there is to know; must be JSON.
    """
    check_target(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = save_tensors({name: tensor.detach().cpu().contiguous() for name, tensor in state.items()})
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": {package: version(package) for package in ("degem", "torch", "numpy")},
        "checksum": hashlib.sha256(tensors).hexdigest(),
        **about,
    }
    document["about_checksum"] = _checksum(document)
    staging = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        _write_synced(staging / TENSORS, tensors)
        _write_synced(staging / ABOUT, json.dumps(document, indent=1, default=_plain).encode())
        _swap(staging, path)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def check_target(path: Path) -> None:
    """Refuse to write a model over anything that is not one."""
    if path.exists() and not (path / ABOUT).is_file() and (not path.is_dir() or any(path.iterdir())):
        raise ModelFileError(f"{path} exists and is not a model folder: choose another path or remove it")


def read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors and the description of a model folder; anything wrong with it is a :class:`ModelFileError`."""
    about = read_about(path)
    try:
        tensors = (path / TENSORS).read_bytes()
    except OSError as error:
        raise ModelFileError(
            f"{path}: {TENSORS} cannot be read ({error.strerror}): fit and save the model again"
        ) from None
    if hashlib.sha256(tensors).hexdigest() != about.get("checksum"):
        raise ModelFileError(
            f"{path}: {TENSORS} is truncated or altered (checksum differs): fit and save the model again"
        )
    try:
        return load_tensors(tensors), about
    except SafetensorError as error:
        raise ModelFileError(f"{path}: {TENSORS} is not a safetensors file: {error}") from None


def read_about(path: Path) -> dict[str, Any]:
    """The description alone, without the tensors."""
    try:
        about = json.loads((path / ABOUT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFileError(
            f"{path} is not a model folder: it has no {ABOUT} (degem fit GRAPH --out MODEL makes one)"
        ) from None
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path}: {ABOUT} cannot be read ({error}): fit and save the model again") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ModelFileError(f"{path}: {ABOUT} does not describe a degem model")
    if about.get("format_version") != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {about.get('format_version')}, this degem reads {FORMAT_VERSION}: install a matching degem"
        )
    expected = about.pop("about_checksum", None)
    if _checksum(about) != expected:
        raise ModelFileError(f"{path}: {ABOUT} was altered (checksum differs): fit and save the model again")
    return about


def foreign(path: str | Path, method: str, expected: str) -> ModelFileError:
    """The error for a model of another method."""
    return ModelFileError(f"{path} holds a {method!r} model, which {expected} cannot load: use Detector.load")


def _checksum(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Settings and NumPy numbers as JSON knows them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a model file")


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _swap(staging: Path, path: Path) -> None:
    """Put ``staging`` in the place of ``path``; a folder cannot be replaced in one rename, so the old one steps aside first."""
    old = staging.with_name(f"{staging.name}-old")
    try:
        if path.exists():
            path.rename(old)
        staging.rename(path)
    except BaseException:  # Ctrl-C between the two renames too
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)
