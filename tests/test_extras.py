"""A missing optional package is told in one line, with what installs it."""

import builtins
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from degem import Detector, Graph
from degem.cli.bench import figure
from degem.data import readers
from degem.errors import DegemError
from degem.extras import needs_extra


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """As if a package was not installed."""

    def hide(package: str) -> None:
        real = builtins.__import__

        def without(name: str, *args: object, **options: object) -> object:
            if name.partition(".")[0] == package:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return real(name, *args, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(builtins, "__import__", without)
        monkeypatch.delitem(sys.modules, "degem.nn.posterior", raising=False)
        monkeypatch.delitem(sys.modules, "degem.bench.figures", raising=False)

    return hide


@pytest.mark.parametrize(
    ("package", "extra", "method"), [("zuko", "bench", "residualflow"), ("normflows", "bench", "gpn")]
)
def test_a_method_names_what_it_lacks(
    package: str, extra: str, method: str, small_graph: Graph, lacking: Callable[[str], None]
) -> None:
    detector = Detector.registry[method](num_epochs=1)
    lacking(package)
    with pytest.raises(DegemError, match=rf"needs the package {package}: pip install 'degem\[{extra}\]'$"):
        detector.fit(small_graph)


def test_a_figure_and_a_reader_name_what_they_lack(tmp_path: Path, lacking: Callable[[str], None]) -> None:
    lacking("matplotlib")
    with pytest.raises(DegemError, match=r"needs the package matplotlib: pip install 'degem\[bench\]'$"):
        figure(tmp_path, tmp_path / "figures")
    lacking("ogb")
    with pytest.raises(DegemError, match=r"needs the package ogb: pip install 'degem\[bench\]'$"):
        readers._ogb_raw(tmp_path)


def test_other_errors_pass() -> None:
    with pytest.raises(ValueError, match="other"), needs_extra("bench", "a test"):
        raise ValueError("other")
