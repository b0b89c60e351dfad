"""What a worker needs is loaded before it starts: no fit's time holds an import."""

import subprocess
import sys

FITS = """
import sys
from importlib import import_module
import numpy as np
import degem.bench.preload
from degem import Detector, Graph
from degem.bench.protocols import run
from degem.detectors.registry import METHODS
from degem.shifts.scenarios import manipulation
from degem.shifts.base import Settings
from degem.data.splits import random_split

for method in METHODS.values():
    import_module(method.import_path.rpartition(".")[0])
rng = np.random.default_rng(0)
graph = Graph.from_arrays(features=rng.random((60, 8)), edges=rng.integers(60, size=(200, 2)), labels=np.arange(60) % 3)
scenario = manipulation(graph, random_split(graph.labelled, 0, train=0.5, val=0.2), Settings())
short = {"num_epochs": 2, "num_teacher_epochs": 2, "num_flow_steps": 2, "num_flows": 2}
before = set(sys.modules)
for name in METHODS:
    detector = Detector.registry[name]()
    detector.set_params(**{key: short[key] for key in short.keys() & detector.get_params().keys()})
    run("strict", detector, scenario, ["feature"])
slow = {"normflows", "numba", "pandas", "scipy", "sklearn", "torch_geometric", "zuko"}
print("loaded", *sorted(module for module in set(sys.modules) - before if module.split(".")[0] in slow))
"""


def test_a_fit_in_a_worker_loads_no_library() -> None:
    found = subprocess.run([sys.executable, "-c", FITS], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "loaded"
