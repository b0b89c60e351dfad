"""What ``degem bench run`` adds to the time of the fits it runs.

    python benchmarks/harness.py
    python benchmarks/harness.py --datasets cora --seeds 1              # minutes

Runs part of the main table in a process of its own, as a user would, with scenarios made beforehand, and sets its whole
time, start to end, against the seconds of fitting and scoring in the rows it wrote. The methods train nothing in
common and each training graph has one shift, so that no second is counted twice. The row goes to
``results/harness.csv``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import measure
import pandas as pd

from degem.bench.store import Store
from degem.shifts import Settings, load_scenario
from degem.shifts.scenarios import kind_of

DATASETS, METHODS, SHIFTS = "cora,chameleon,actor", "degem,msp,oodgat,gpn", "structure,label"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", default=DATASETS, help="names, separated by commas")
    parser.add_argument("--methods", default=METHODS, help="names, separated by commas; none that share a network")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--no-write", action="store_true", help="leave benchmarks/results as it is")
    options = parser.parse_args()
    for dataset, shift, seed in product(options.datasets.split(","), SHIFTS.split(","), range(options.seeds)):
        load_scenario(dataset, kind_of(shift), Settings(seed=seed))
    row = overhead(options.datasets, options.methods, options.seeds, options.workers)
    print(measure.machine())
    print(pd.DataFrame([row]).to_string(index=False, float_format="{:.2f}".format))
    if not options.no_write:
        measure.write([row], "harness", key=["command", "workers"])


def overhead(datasets: str, methods: str, seeds: int, workers: int) -> dict[str, Any]:
    """Time of the whole run on all its processes, and how much of it is not fitting or scoring."""
    with tempfile.TemporaryDirectory() as folder:
        command = f"degem bench run main --methods {methods} --datasets {datasets} --shifts {SHIFTS}"
        arguments = [*command.split()[1:], "--seeds", str(seeds), "--workers", str(workers), "--out", folder]
        start = time.perf_counter()
        subprocess.run([Path(sys.executable).with_name("degem"), *arguments], check=True, stdout=sys.stderr)
        seconds = time.perf_counter() - start
        rows = Store(Path(folder)).rows()
    if failures := [row.error for row in rows if row.error]:
        raise RuntimeError(f"{len(failures)} fits failed: {failures[0]}")
    at_work = sum(row.fit_seconds + row.score_seconds for row in rows)
    return {
        "command": f"{command} --seeds {seeds}",
        "workers": workers,
        "fits": len(rows),
        "wall_seconds": seconds,
        "fit_and_score_seconds": at_work,
        "added_percent": 100 * (seconds * workers / at_work - 1),
    }


if __name__ == "__main__":
    measure.find_datasets()
    os.environ.setdefault("COLUMNS", "120")
    main()
