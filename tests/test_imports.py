"""Imports point one way: a module may import from its own floor and from those below it."""

import ast
from pathlib import Path

import pytest

import degem

ROOT = Path(degem.__file__).parent
FLOORS = [
    {"errors"},
    {"files", "parameters", "metrics", "training", "threads", "extras", "ops", "schema"},
    {"index_checks", "model_file", "propagation"},
    {"graph_checks", "graph_inputs", "graph"},
    {"data", "nn", "calibration"},
    {"shifts"},
    {"detectors"},
    {"explain"},
    {"adapters", "groups", "drift", "compare"},
    {"bench"},
    {"engine"},
    {"report", "serve", "client"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def imported(source: str):
    """The rooms of degem that a module imports, anywhere in it, with the line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "degem":
            names = [degem._HOMES.get(alias.name, f"degem.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""] if node.level == 0 else ["degem.<relative>"]
        else:
            continue
        yield from ((name.split(".")[1], node.lineno) for name in names if name.startswith("degem."))


def arrows_back(room: str, source: str):
    """Every import that points up, or at something that has no floor."""
    return [
        f"line {line}: {room} imports {other}"
        for other, line in imported(source)
        if FLOOR.get(other, len(FLOORS)) > FLOOR[room]
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert room in FLOOR, f"{path} is new: give it a floor in this test"
    assert arrows_back(room, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("ops", "from degem.graph import Graph"),
        ("data", "def late():\n    from degem.detectors.base import Detector"),
        ("shifts", "import degem.detectors"),
        ("graph", "from degem import DeGEM"),
        ("detectors", "from degem import bench"),
        ("nn", "from . import heads"),
        ("errors", "import degem.novelty"),
    ],
)
def test_an_arrow_that_points_back_is_found(room, source):
    assert len(arrows_back(room, source)) == 1


def test_an_arrow_that_points_down_is_fine():
    assert arrows_back("cli", "import numpy\nfrom degem import Detector, metrics\nfrom degem.bench import runner") == []
