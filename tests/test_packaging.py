"""The project file names all that is imported, and pins torch as the constraints do."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
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


def test_torch_is_a_range_for_users_and_one_version_for_development():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "torch>=2.4" in project["dependencies"]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    assert [pin.partition("==")[0] for pin in pins] == ["torch"]
