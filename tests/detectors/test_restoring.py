"""Model files from strangers: checked against what their method declares before anything is built."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from degem import Detector, Graph
from degem.detectors.restoring import restored
from degem.errors import DegemError, ModelFileError
from degem.model_file import tensor_of

GRAPH = Graph.from_arrays(
    features=np.random.default_rng(0).random((40, 5)), edges=[(i, i + 1) for i in range(39)], labels=np.arange(40) % 2
)
QUICK: dict[str, dict[str, Any]] = {
    "msp": {"num_epochs": 2, "hidden_dim": 8},
    "iforest": {},
    "knn": {"num_epochs": 2, "hidden_dim": 8},
    "degem": {"num_epochs": 2, "latent_dim": 8},
}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("fitted")
    for method, settings in QUICK.items():
        Detector.registry[method](**settings).fit(GRAPH).save(folder / method)
    return {method: folder / method for method in QUICK}


def crafted(source: Path, target: Path, change: Any) -> Path:
    """A copy whose description and tensors ``change`` changes, with checksums that fit."""
    shutil.copytree(source, target)
    about = json.loads((target / "model.json").read_text())
    (old,) = target.glob("*.safetensors")
    tensors = load(old.read_bytes())
    change(about, tensors)
    old.unlink()
    content = save(tensors)
    del about["about_checksum"]
    about["checksum"] = hashlib.sha256(content).hexdigest()
    about["about_checksum"] = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    (target / "model.json").write_text(json.dumps(about))
    (target / f"state-{about['checksum'][:16]}.safetensors").write_bytes(content)
    return target


def parameter(name: str, value: Any) -> Any:
    return lambda about, _: about["parameters"].update({name: value})


def said(name: str, value: Any) -> Any:
    return lambda about, _: about.update({name: value})


def tensor(name: str, value: torch.Tensor) -> Any:
    return lambda _, tensors: tensors.update({name: value})


BAD = {
    "a huge width": ("msp", parameter("hidden_dim", 20_000), "the model file's tensor"),
    "a wider width": ("msp", parameter("hidden_dim", 10**9), "hidden_dim = 1000000000"),
    "many layers": ("msp", parameter("num_layers", 10**6), "num_layers = 1000000"),
    "endless steps": ("degem", lambda about, _: about["parameters"]["langevin"].update(num_steps=10**30), "num_steps"),
    "no CUDA": ("msp", parameter("device", "cuda"), "no CUDA device"),
    "no device": ("msp", parameter("device", "meta"), "choose cpu"),
    "a method that is a dict": ("msp", said("method", {}), "'method'"),
    "a stranger": ("msp", said("method", "x"), "import its class"),
    "a missing parameter": ("msp", lambda about, _: about["parameters"].pop("dropout"), "'dropout' is missing"),
    "a missing key": ("msp", lambda about, _: about.pop("classes"), "'classes'"),
    "classes of text": ("msp", said("classes", ["0", "1"]), "'classes.0'"),
    "twin classes": ("msp", said("classes", [1, 1]), "distinct"),
    "names for other features": ("msp", said("feature_names", ["a"]), "one name for each feature"),
    "names for other classes": ("msp", said("class_names", ["a"]), "one name for each class"),
    "other features": ("msp", said("num_features", 6), "the model file's tensor"),
    "a missing tensor": ("msp", lambda _, tensors: tensors.pop("calibration.scores"), "'calibration.scores'"),
    "one tensor more": ("msp", tensor("model.x", torch.ones(1)), "'model.x'"),
    "scores of another type": ("msp", tensor("calibration.scores", torch.ones(4)), "torch.float32"),
    "scores of another length": ("msp", tensor("calibration.scores", torch.ones(9, dtype=torch.float64)), "shape"),
    "a bank of another width": ("knn", tensor("model.bank", torch.ones(4, 3)), "'bank'"),
    "trees that walk in circles": ("iforest", lambda _, tensors: tensors["model.left"].fill_(0), "point outside"),
    "trees that lead outside": ("iforest", lambda _, tensors: tensors["model.right"].fill_(10**9), "point outside"),
    "trees on other columns": ("iforest", lambda _, tensors: tensors["model.features"].fill_(99), "point outside"),
}


@pytest.mark.parametrize("case", BAD)
def test_crafted_models_are_refused(fitted: dict[str, Path], tmp_path: Path, case: str) -> None:
    method, change, reason = BAD[case]
    path = crafted(fitted[method], tmp_path / "m", change)
    with pytest.raises(DegemError, match=reason):
        Detector.load(path)


@pytest.mark.parametrize("method", QUICK)
def test_a_copy_with_nothing_changed_is_the_same(fitted: dict[str, Path], tmp_path: Path, method: str) -> None:
    path = crafted(fitted[method], tmp_path / "m", lambda *_: None)
    again, first = Detector.load(path), Detector.load(fitted[method])
    np.testing.assert_array_equal(again.decision_function(GRAPH), first.decision_function(GRAPH))


def test_a_model_that_links_to_a_device_or_is_a_pipe(fitted: dict[str, Path], tmp_path: Path) -> None:
    for number, make in enumerate((lambda path: path.symlink_to("/dev/zero"), os.mkfifo)):
        for pattern in ("model.json", "*.safetensors"):
            copy = tmp_path / f"{number}{pattern[0]}"
            shutil.copytree(fitted["msp"], copy)
            (victim,) = copy.glob(pattern)
            victim.unlink()
            make(victim)
            with pytest.raises(ModelFileError, match="not a regular file"):
                Detector.load(copy)


def test_nothing_is_made_of_tensors_that_do_not_fit() -> None:
    class Fake:
        device = "cpu"

    made = []

    def make() -> torch.nn.Module:
        made.append(fake.device)
        return torch.nn.Linear(10**6, 10**6)  # four terabytes, were it made

    fake = Fake()
    with pytest.raises(ModelFileError, match="'weight'"):
        restored(fake, make, {"weight": torch.ones(1)})  # type: ignore[arg-type]
    assert made == ["meta"]
    assert fake.device == "cpu"


def test_a_tensor_of_the_wrong_type_is_named() -> None:
    with pytest.raises(ModelFileError, match=r"'a' is torch\.float32"):
        tensor_of({"a": torch.ones(1)}, "a", torch.int64, 1)
