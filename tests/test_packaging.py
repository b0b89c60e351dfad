"""The wheel holds all there is to run, and the metadata name all that is imported."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORT_NAMES = {"torch-geometric": "torch_geometric", "scikit-learn": "sklearn", "umap-learn": "umap"}

LENT = {"networkx"}  # imported only for who comes with a NetworkX graph


def _imported_packages() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - LENT - {"degem"}


def test_what_is_imported_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for name, lines in project["optional-dependencies"].items() if name != "dev" for line in lines]
    names = {re.split(r"[<>=\[ ]", line)[0] for line in [*project["dependencies"], *extras]}
    assert _imported_packages() <= {IMPORT_NAMES.get(name, name) for name in names}


def test_the_constraints_pin_torch_as_the_project_does():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (ROOT / "constraints.txt").read_text(encoding="utf-8").split() == [
        line for line in project["dependencies"] if line.startswith("torch==")
    ]


def test_the_wheel_runs_outside_the_source_tree(tmp_path):
    """Its own files in an empty environment; what it depends on is lent by this one, to spare minutes of installing.

    ``scripts/check-wheel`` installs the dependencies as well.
    """
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("degem-*.whl")
    venv.create(tmp_path / "empty", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "empty" / "lib").glob("python*/site-packages")
    install = [sys.executable, "-m", "pip", "--python", str(tmp_path / "empty" / "bin" / "python"), "install"]
    subprocess.run([*install, "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    lender = Path(next(path for path in sys.path if path.endswith("site-packages")))
    (site / "lent.pth").write_text(str(lender), encoding="utf-8")
    degem = tmp_path / "empty" / "bin" / "degem"
    where = [tmp_path / "empty" / "bin" / "python", "-c", "import degem; print(degem.__file__)"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(where, cwd=tmp_path, check=True, capture_output=True, text=True, env=environment).stdout
    assert Path(told.strip()).is_relative_to(tmp_path)
    methods = subprocess.run(
        [degem, "methods", "--json"], cwd=tmp_path, check=True, capture_output=True, env=environment
    )
    assert "degem" in {row["name"] for row in json.loads(methods.stdout)}
    shipped = {path.relative_to(site / "degem").as_posix() for path in (site / "degem").rglob("*") if path.is_file()}
    sources = {
        path.relative_to(ROOT / "src/degem").as_posix() for path in (ROOT / "src/degem").rglob("*") if path.is_file()
    }
    assert {name for name in sources if "__pycache__" not in name} <= shipped
