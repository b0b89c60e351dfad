"""Methods of other packages: docs/adding-a-method.md as written, installed, found by name and by class."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from degem import Graph
from degem.data.archives import write_npz
from degem.detectors.registry import METHODS, Registry
from degem.errors import ParameterError

PAGE = Path(__file__).parents[1] / "docs" / "adding-a-method.md"
BY_CLASS = "feature_distance:FeatureDistance"


def block(name: str, language: str) -> str:
    """The first block of a language behind the name of a file."""
    found = re.search(rf"`{re.escape(name)}`:\n\n```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the package that the page describes."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "feature_distance.py").write_text(block("feature_distance.py", "python"), encoding="utf-8")
    (folder / "pyproject.toml").write_text(block("pyproject.toml", "toml"), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def installed(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it is installed: offline, and nowhere else."""
    target = tmp_path_factory.mktemp("installed")
    copy = shutil.copytree(package, tmp_path_factory.mktemp("built") / "package")  # a build leaves entry points there
    flags = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *flags, "--target", target, copy], check=True)
    return target


@pytest.fixture(scope="module")
def graph(small_graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    write_npz(small_graph, path)
    return path


def degem(path: Path, *words: object, **variables: str) -> str:
    """What the command prints, with a folder on Python's path."""
    paths = os.pathsep.join([str(path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"} | variables
    command = [sys.executable, "-m", "degem", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installed_method_is_listed_fitted_and_scored_by_its_name(
    installed: Path, graph: Path, tmp_path: Path
) -> None:
    (row,) = (row for row in json.loads(degem(installed, "methods", "--json")) if row["name"] == "feature-distance")
    assert (row["plugin"], row["needs_labels"], row["paper"]) == (BY_CLASS, False, "Mahalanobis 1936, diagonal")
    degem(installed, "fit", graph, "--method", "feature-distance", "--set", "ridge=0.01", "--out", tmp_path / "model")
    degem(installed, "score", tmp_path / "model", graph, "--out", tmp_path / "scores.csv")
    assert np.isfinite(pd.read_csv(tmp_path / "scores.csv")["score"]).all()


def test_a_class_is_found_by_its_module(package: Path, graph: Path, tmp_path: Path) -> None:
    degem(package, "fit", graph, "--method", BY_CLASS, "--out", tmp_path / "model")
    words = ("score", tmp_path / "model", graph, "--out", "-")
    assert degem(package, *words, "--detector-class", BY_CLASS).startswith("node_id,score")
    with pytest.raises(AssertionError, match="--detector-class"):
        degem(package, *words)


@pytest.mark.parametrize(("folder", "method"), [("installed", "feature-distance"), ("package", BY_CLASS)])
def test_the_benchmark_runs_it_in_its_own_processes(
    folder: str, method: str, data_dir: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = request.getfixturevalue(folder)
    words = ("--methods", method, "--datasets", "cornell", "--shifts", "feature", "--seeds", 1, "--workers", 1)
    degem(where, "bench", "run", "arrival", *words, "--data-dir", data_dir, "--out", tmp_path / "results", "--mkdir")
    rows = pd.read_csv(tmp_path / "results" / "results.csv")
    assert list(rows["method"]) == [method]
    assert rows["error"].isna().all()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no-such-method", "there is no method 'no-such-method'"),
        ("no_such_module:Class", "No module named 'no_such_module'"),
        ("degem.detectors.logits:Nothing", "has no attribute 'Nothing'"),
        ("pathlib:Path", "not a subclass of degem.Detector"),
    ],
)
def test_what_is_no_method_is_told_in_one_line(name: str, told: str) -> None:
    registry = Registry(METHODS)
    with pytest.raises(ParameterError, match=told):
        registry.check(name)
    assert name not in registry
    assert registry.get(name) is None


def test_a_class_by_its_module_is_the_same_class() -> None:
    registry = Registry(METHODS)
    registry.check("degem.detectors.logits:MSP")
    assert registry["degem.detectors.logits:MSP"] is registry["msp"]
