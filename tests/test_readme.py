"""What the README and the docs tell people to type, typed."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from degem import Detector, Graph
from degem.cli import main
from degem.data.archives import write_npz
from degem.data.demo import arriving, digits_graph

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


@pytest.fixture
def after_demo(tmp_path: Path) -> Path:
    """A folder in which the demo's graphs lie where the demo leaves them."""
    (tmp_path / "demo" / "digits").mkdir(parents=True)
    for name, graph in zip(("before", "after"), arriving(digits_graph()), strict=True):
        write_npz(graph, tmp_path / "demo" / "digits" / f"{name}.npz")
    return tmp_path


def _quickstart(language: str, page: str = "README.md") -> str:
    readme = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf"<!-- tested: {language} -->\n```\w+\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    return found[1]


def test_python_quickstart(after_demo, monkeypatch):
    monkeypatch.chdir(after_demo)
    names: dict[str, object] = {}
    exec(compile(_quickstart("python"), "README.md", "exec"), names)
    table = names["table"]
    assert isinstance(table, pd.DataFrame)
    np.testing.assert_array_equal(table["score"], np.asarray(names["scores"]))
    np.testing.assert_array_equal(table["is_ood"], np.asarray(names["flags"]))
    same = names["same"]
    assert isinstance(same, Detector)
    np.testing.assert_array_equal(same.decision_function(arriving(digits_graph())[1]), np.asarray(names["scores"]))


def test_shell_quickstart(after_demo, monkeypatch, capsys):
    monkeypatch.chdir(after_demo)
    for line in _quickstart("shell").splitlines():
        command, *words = shlex.split(line)
        assert command == "degem"
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert not stop.value.code, capsys.readouterr().err
    assert len(pd.read_parquet("scores.parquet")) == 1354 - 885
    assert "<html" in Path("report.html").read_text(encoding="utf-8")
    assert "AUROC" in capsys.readouterr().out


def test_your_own_model(small_graph: Graph):
    outputs = np.random.default_rng(0).normal(size=(small_graph.num_nodes, 3))
    names = {"graph": small_graph, "grown": small_graph, "logits": outputs, "latents": outputs}
    names |= {"new_logits": outputs, "new_latents": outputs, "trained_on": np.arange(20)}
    exec(compile(_quickstart("python", "docs/own-model.md"), "own-model.md", "exec"), names)
    assert len(names["p"]) == small_graph.num_nodes


def _imported(path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CHANGELOG.md",
        "SECURITY.md",
        *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
    ],
)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    missing = [target for target in LINK.findall(text) if not (ROOT / page).parent.joinpath(target).exists()]
    assert missing == []


def test_every_public_name_is_there():
    import degem

    assert all(getattr(degem, name) is not None for name in degem.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        degem.nothing  # noqa: B018
