"""Model folders: damaged, crafted with fitting checksums, and special ones."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from random import Random

import numpy as np
import torch
from safetensors.torch import load, save

from degem import Detector, Graph, NodeSet, model_file, parameters
from fuzz.files import Attempt, expect
from fuzz.mutate import spoil_array, spoil_bytes, spoil_json

QUICK = {
    "num_epochs": 2,
    "num_teacher_epochs": 2,
    "num_flow_steps": 2,
    "latent_dim": 8,
    "num_flows": 2,
    "hidden_dim": 8,
}
METHODS = sorted(Detector.registry)


@functools.cache
def graph() -> Graph:
    """Three classes of twenty nodes."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    features = rng.random((60, 6)) + np.repeat(np.eye(3)[labels], 2, axis=1)
    return Graph.from_arrays(features=features, edges=rng.integers(0, 60, (120, 2)), labels=labels)


@functools.cache
def home(method: str) -> Path:
    """A small fitted model of a method, in a folder."""
    folder = Path(tempfile.mkdtemp(prefix="degem-fuzz-model-")) / "model"
    kind = Detector.registry[method]
    known = parameters.names(kind)
    detector = kind(**{name: value for name, value in QUICK.items() if name in known})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector.fit(graph(), exposure=NodeSet(graph(), np.arange(50, 60)) if kind.needs_exposure else None)
    detector.save(folder)
    return folder


@functools.cache
def scores(method: str) -> np.ndarray:
    """What the whole model says."""
    return Detector.load(home(method)).decision_function(graph())


def damaged(rng: Random, folder: Path) -> Attempt:
    """A model folder with spoilt bytes: the same scores, or an error."""
    method = rng.choice(METHODS)
    model = folder / "model"
    shutil.copytree(home(method), model)
    victim = rng.choice(sorted(path for path in model.iterdir() if path.name != model_file.LOCK))
    victim.write_bytes(spoil_bytes(rng, victim.read_bytes()))

    def attempt() -> None:
        expect(
            np.array_equal(Detector.load(model).decision_function(graph()), scores(method)), f"other scores of {method}"
        )

    return attempt


def crafted(rng: Random, folder: Path) -> Attempt:
    """A model folder changed by somebody who knows the checksums: finite scores, or an error."""
    method = rng.choice(METHODS)
    model = folder / "model"
    shutil.copytree(home(method), model)
    about = json.loads((model / "model.json").read_text())
    (old,) = model.glob("*.safetensors")
    tensors = load(old.read_bytes())
    for _ in range(rng.randint(1, 2)):
        if rng.random() < 0.6:
            about = spoil_json(rng, about)
        else:
            tensors = _spoilt(rng, tensors)
    content = save(tensors)
    if rng.random() < 0.05:
        content = spoil_bytes(rng, content)
    old.unlink()
    about["checksum"] = hashlib.sha256(content).hexdigest()
    about.pop("about_checksum", None)
    about = json.loads(json.dumps(about))
    about["about_checksum"] = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    (model / "model.json").write_text(json.dumps(about))
    (model / f"state-{about['checksum'][:16]}.safetensors").write_bytes(content)
    if rng.random() < 0.02:
        _special(rng, model)

    def attempt() -> None:
        detector = Detector.load(model)
        found = detector.score_table(graph())
        expect(np.isfinite(found["score"]).all() and len(found) == 60, "scores that are none")

    return attempt


def _spoilt(rng: Random, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    tensors = dict(tensors)
    name = rng.choice(sorted(tensors))
    match rng.randrange(5):
        case 0:
            del tensors[name]
        case 1:
            tensors[rng.choice(["x", name + ".x", "model.", "calibration.x"])] = torch.ones(2)
        case 2:
            tensors[name] = tensors[name].to(
                rng.choice([torch.float16, torch.int8, torch.float64, torch.bool, torch.bfloat16])
            )
        case _:
            plain = tensors[name].float() if tensors[name].dtype == torch.bfloat16 else tensors[name]
            array = spoil_array(rng, plain.numpy())
            if array.dtype.kind in "iufb" and array.dtype.isnative:
                tensors[name] = torch.from_numpy(np.array(array))
    return {name: tensor.contiguous().clone() for name, tensor in tensors.items()}


def _special(rng: Random, model: Path) -> None:
    """Links, pipes and devices where files should be."""
    victim = rng.choice([path for path in model.iterdir() if path.name != model_file.LOCK])
    victim.unlink()
    match rng.randrange(4):
        case 0:
            victim.symlink_to("/dev/zero")
        case 1:
            os.mkfifo(victim)
        case 2:
            victim.mkdir()
        case 3:
            victim.symlink_to(victim.name)
