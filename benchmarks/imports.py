"""What starting takes: seconds to import degem and to print its help, and the modules on the way of fit and score.

    python benchmarks/imports.py

Seconds are those of the processor, the least of several processes, so that a busy machine does not count. A fit is one
of DeGEM on a graph of 60 nodes in CSV, a score that of the model on the same graph.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

TRIALS = 7
COUNT = "\nimport sys\nprint(sum(name.split('.')[0] == 'degem' for name in sys.modules))"
RUN = "from degem.cli import app\napp({words!r}, standalone_mode=False)"


def main() -> None:
    for name, code in {
        "python -c pass": "pass",
        "import degem": "import degem",
        "from degem import DeGEM": "from degem import DeGEM",
        "degem --help": RUN.format(words=["--help"]),
    }.items():
        print(f"{name}: {min(seconds(code) for _ in range(TRIALS)):.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        graph, model = write_graph(Path(folder) / "graph"), f"{folder}/model"
        fit = ["fit", str(graph), "--out", model, "--set", "num_epochs=2"]
        score = ["score", model, str(graph), "--out", f"{folder}/scores.csv"]
        for words in (fit, score):
            print(f"degem {words[0]}: {printed(RUN.format(words=words) + COUNT).splitlines()[-1]} modules of degem")


def seconds(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def write_graph(folder: Path) -> Path:
    folder.mkdir()
    nodes = [f"n{node},{'ab'[node % 2]},{node % 7},{node % 5}" for node in range(60)]
    edges = [f"n{node},n{(node + 2) % 60}" for node in range(60)]
    (folder / "nodes.csv").write_text("\n".join(["id,label,x,y", *nodes, ""]))
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges, ""]))
    return folder


if __name__ == "__main__":
    main()
