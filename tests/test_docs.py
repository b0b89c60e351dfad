"""The site holds every page, and its reference every public name; ``make docs`` checks the rest."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import degem
from degem.detectors.registry import METHODS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
TREE = re.compile(r"```\{toctree\}\n(?::.*\n)*\n((?:.+\n)+)```")
DIRECTIVE = re.compile(r"^\.\. auto(\w+):: ([\w.]+)\n((?:   :.*\n)*)", re.MULTILINE)
IMPORT = re.compile(r"^from (degem[\w.]*) import (.+)$", re.MULTILINE)


def test_every_page_has_its_place():
    placed = {"index.md"}
    for page in (DOCS / "index.md", *DOCS.glob("*/index.md")):
        for entries in TREE.findall(page.read_text(encoding="utf-8")):
            placed |= {(page.parent / f"{entry}.md").relative_to(DOCS).as_posix() for entry in entries.split()}
    assert {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} == placed


def test_the_reference_has_every_public_name():
    reference = {id(thing) for page in (DOCS / "api").glob("*.md") for thing in _described(page)}
    public = [f"degem.{name}" for name in degem.__all__] + [method.import_path for method in METHODS.values()]
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        public += [f"{module}.{name}" for module, names in IMPORT.findall(text) for name in re.split(r",\s*", names)]
        public += re.findall(r"degem(?:\.[a-zA-Z]\w*)+", text)
    assert sorted({path for path in public if _is_code(path) and id(_found(path)) not in reference}) == []


def _described(page: Path) -> Iterator[object]:
    """What the directives of a page describe."""
    for kind, path, options in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
        if not kind.startswith("module"):
            yield _found(path)
            continue
        package = import_module(path)
        inside = iter_modules(package.__path__) if kind == "modules" else ()
        for module in (package, *(import_module(f"{path}.{found.name}") for found in inside)):
            for name, thing in vars(module).items():
                own = inspect.getmodule(thing) is module or "imported-members" in options
                if own and not name.startswith("_"):
                    yield thing


def _found(path: str) -> object:
    """The object of a dotted path."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        return import_module(path)


def _is_code(path: str) -> bool:
    """Whether a dotted path is a class or a function: modules are described by their members."""
    try:
        return inspect.isclass(_found(path)) or inspect.isfunction(_found(path))
    except (ImportError, ValueError):
        return False
