"""Where a training run stands, on disk: one safetensors file a phase, replaced in one rename. Nothing is unpickled."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from degem.errors import DegemError

SUFFIX = ".checkpoint"
EVERY = 5.0  # seconds: a shorter fit is sooner done again than its checkpoints are worth, and writes none
MAX_SHARE = 0.01  # of the time may go into writing checkpoints
Part = nn.Module | torch.optim.Optimizer | torch.Generator | Tensor


class Checkpoints:
    """The checkpoints of one fit, in one folder.

    Arguments:
        folder: The folder; made when first written to.
        key: What the fit depends on (method, parameters, graph). Checkpoints of another key are refused.
        resume: Whether to go on from what is there; else checkpoints that are there are removed.
        every: Seconds to the first checkpoint and between any two; more where writing one takes long.
    """

    def __init__(self, folder: str | Path, key: str, *, resume: bool = False, every: float = EVERY) -> None:
        self.folder, self.key, self.every = Path(folder), key, every
        self._last, self._cost = time.monotonic(), 0.0
        if not resume:
            self.remove()

    def due(self) -> bool:
        """Whether the last checkpoint is old enough for another."""
        return time.monotonic() - self._last >= max(self.every, self._cost / MAX_SHARE)

    def save(self, phase: str, done: int, parts: Mapping[str, Part], history: dict[str, list[float]]) -> None:
        """Write what ``parts`` hold after ``done`` steps of a phase; a crash on the way leaves the last checkpoint."""
        start = time.monotonic()
        tensors = {f"{name}/{key}": tensor for name, part in parts.items() for key, tensor in _state(part).items()}
        tensors["random"] = torch.get_rng_state()
        about = json.dumps({"key": self.key, "done": done, "history": history})
        self.folder.mkdir(parents=True, exist_ok=True)
        staging = self._file(f".{phase}-{os.getpid()}")
        try:
            staging.write_bytes(save({name: tensor.contiguous() for name, tensor in tensors.items()}, {"about": about}))
            staging.replace(self._file(phase))
        finally:
            staging.unlink(missing_ok=True)
        self._last = time.monotonic()
        self._cost = self._last - start

    def restore(self, phase: str, parts: Mapping[str, Part]) -> tuple[int, dict[str, list[float]]]:
        """Put a phase's last checkpoint into ``parts``: the steps done and their history, or (0, {}) without one."""
        file = self._file(phase)
        if not file.exists():
            return 0, {}
        try:
            with safe_open(file, "pt") as stored:
                about = json.loads(stored.metadata()["about"])
                names = stored.keys()
                tensors = {name: stored.get_tensor(name) for name in names}
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            raise DegemError(f"{file} is no checkpoint ({error}): remove it to start anew") from None
        if about.get("key") != self.key:
            raise DegemError(
                f"{self.folder} holds the checkpoint of another fit (other graph, method or parameters): "
                "repeat that fit's options, or start anew without resuming"
            )
        for name, part in parts.items():
            prefix = f"{name}/"
            _restore(
                part, {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
            )
        torch.set_rng_state(tensors["random"])
        return int(about["done"]), about["history"]

    def remove(self) -> None:
        """Remove the checkpoints, and the folder if there is nothing else: the fit is complete, or starts anew."""
        for file in checkpoints_in(self.folder):
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def _file(self, phase: str) -> Path:
        return self.folder / f"{phase}{SUFFIX}"


def checkpoints_in(folder: Path) -> list[Path]:
    """The checkpoints in a folder, those half written included."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def _state(part: Part) -> dict[str, Tensor]:
    """Everything that changes in a part, as named tensors."""
    if isinstance(part, nn.Module):
        return {key: tensor.detach() for key, tensor in part.state_dict().items()}
    if isinstance(part, torch.optim.Optimizer):
        moments: dict[int, dict[str, Any]] = part.state_dict()["state"]
        return {f"{index}/{key}": torch.as_tensor(value) for index, of in moments.items() for key, value in of.items()}
    if isinstance(part, torch.Generator):
        return {"state": part.get_state()}
    return {"value": part.detach()}


def _restore(part: Part, state: dict[str, Tensor]) -> None:
    """The inverse of :func:`_state`, in place."""
    if isinstance(part, nn.Module):
        part.load_state_dict(state)
    elif isinstance(part, torch.optim.Optimizer):
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in state.items():
            index, key = name.split("/")
            moments.setdefault(int(index), {})[key] = value
        part.load_state_dict({"state": moments, "param_groups": part.state_dict()["param_groups"]})
    elif isinstance(part, torch.Generator):
        part.set_state(state["state"])
    else:
        part.detach().copy_(state["value"])
