import subprocess
import sys

import pytest

from degem import Detector, detectors
from degem.detectors.registry import METHODS, Registry


def test_every_method_lives_where_the_registry_says():
    assert [Detector.registry[name].name for name in METHODS] == list(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_the_registry_says_of_a_method_what_its_class_says(name):
    kind, (_, *facts) = Detector.registry[name], METHODS[name]
    assert facts == [kind.paper, kind.needs_labels, kind.needs_exposure]


def test_classes_are_attributes_of_the_package():
    assert detectors.MSP is Detector.registry["msp"]
    with pytest.raises(AttributeError, match="NoSuchMethod"):
        _ = detectors.NoSuchMethod
    assert "GNNSafe" in dir(detectors)


def test_a_registry_is_a_mapping():
    registry = Registry({"msp": METHODS["msp"]})
    registry["own"] = Detector.registry["degree"]
    assert list(registry) == ["msp", "own"]
    assert len(registry) == 2
    assert "none" not in registry
    with pytest.raises(KeyError):
        _ = registry["none"]
    del registry["own"]
    assert list(registry) == ["msp"]


SLOW = ("torch_geometric", "torch._dynamo", "sklearn", "scipy.stats", "zuko", "normflows", "matplotlib", "plotly")


@pytest.mark.parametrize(
    "code",
    [
        "import degem.cli, degem.bench.processes",
        "from degem import Detector; 'msp' in Detector.registry",
        "from degem import Graph, read_graph; import degem.data.datasets",
        "from degem.bench import runner, specs; specs.tasks_of([specs.read_spec('main')], 'strict')",
    ],
)
def test_slow_libraries_wait_until_they_are_needed(code):
    assert loaded_by(code, SLOW) == []


@pytest.mark.parametrize(
    "code",
    [
        "import degem.detectors.registry, degem.bench.processes",
        "from degem.cli import app; app(['methods'], standalone_mode=False)",
        "from degem.cli import app; app(['datasets'], standalone_mode=False)",
    ],
)
def test_names_are_listed_without_torch(code):
    assert loaded_by(code, ("torch", *SLOW)) == []


def loaded_by(code: str, libraries: tuple[str, ...]) -> list[str]:
    """Those of some libraries that a new process has loaded after running some code."""
    listing = f"{code}\nimport sys\nprint('loaded', *set({libraries!r}) & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return found.stdout.splitlines()[-1].split()[1:]
