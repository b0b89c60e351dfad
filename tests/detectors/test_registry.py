import subprocess
import sys

import pytest

from degem import Detector, detectors
from degem.detectors.registry import METHODS, Registry


def test_every_method_lives_where_the_registry_says():
    assert [Detector.registry[name].name for name in METHODS] == list(METHODS)


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


LISTED = "import sys, degem.detectors.registry, degem.bench.processes; print('torch' in sys.modules)"
SLOW = ("torch_geometric", "torch._dynamo", "sklearn", "scipy.stats", "zuko", "normflows", "matplotlib", "plotly")


@pytest.mark.parametrize(
    "code",
    [
        "import degem.cli, degem.bench.processes",
        "from degem import Detector; 'msp' in Detector.registry",
        "from degem import Graph, read_graph; import degem.data.datasets",
    ],
)
def test_slow_libraries_wait_until_they_are_needed(code):
    listing = f"{code}\nimport sys\nprint(*set({SLOW!r}) & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def test_the_names_of_methods_are_known_without_torch():
    found = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
