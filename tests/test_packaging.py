"""The project file names all that is imported, and pins torch as the constraints do."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
IMPORT_NAMES = {"scikit-learn": "sklearn", "umap-learn": "umap"}

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
    assert _imported_packages() <= {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in names}


def test_torch_is_a_range_for_users_and_one_version_for_development():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "torch>=2.4" in project["dependencies"]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    assert [pin.partition("==")[0] for pin in pins] == ["torch"]


LOCKS = sorted((ROOT / "locks").glob("*.txt"))


def test_there_is_a_lock():
    assert LOCKS


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_has_what_the_project_asks_for_with_hashes(lock):
    lines = [line for line in lock.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    pins = {canonicalize_name(name): version for name, version in (line.split()[0].split("==") for line in lines)}
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, extras = document["project"], ["dev"]
    asked = [*document["build-system"]["requires"], *project["dependencies"]]
    asked += (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    for extra in extras:  # one that names others of degem's adds these
        lines = project["optional-dependencies"][extra]
        extras += [own for line in lines if Requirement(line).name == "degem" for own in Requirement(line).extras]
        asked += [line for line in lines if Requirement(line).name != "degem"]
    wrong = [
        line
        for line in map(Requirement, asked)
        if not line.specifier.contains(pins.get(canonicalize_name(line.name), "0"))
    ]
    assert wrong == [], "run make lock"
