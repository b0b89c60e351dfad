"""The wheel holds the whole package and runs from an environment of its own."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.xdist_group("wheel")  # one worker, so that the wheel is built once


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy of the sources, so that nothing left over from another build gets in."""
    copy = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", copy)
    return next((copy / "dist").glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """An empty environment with the wheel in it; it borrows the dependencies, and only them, from this one."""
    home = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", home)
    python = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return home


def test_the_wheel_holds_every_file_of_the_package(wheel):
    source = ROOT / "src"
    files = (path for path in (source / "degem").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    expected = {path.relative_to(source).as_posix() for path in files}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("degem/")}
    assert packed == expected


def test_the_demo_runs_from_the_wheel(environment, tmp_path):
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    where = run(environment / "bin" / "python", "-c", "import degem; print(degem.__file__)", cwd=tmp_path, env=clean)
    assert Path(where.strip()).is_relative_to(environment)
    printed = run(environment / "bin" / "degem", "demo", "--json", "--threads", 1, cwd=tmp_path, env=clean)
    assert {row["graph"] for row in json.loads(printed)} == {"digits", "heterophilic"}
    assert (tmp_path / "demo" / "digits" / "scores.parquet").is_file()
