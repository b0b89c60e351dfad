"""``python -m fuzz``: tries hostile inputs, prints what failed and how to see it again."""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

from fuzz import harness, writers

SHOWN = 20  # failures of a kind


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=2000, help="inputs over all kinds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=harness.KINDS, action="append", help="only this kind; may be given again")
    parser.add_argument("--only", type=int, metavar="INDEX", help="one input, with its traceback")
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="kill -9 each writer N times instead")
    parser.add_argument("--savers", type=int, default=0, metavar="N", help="N rounds of two savers instead")
    asked = parser.parse_args()
    if asked.kills or asked.savers:
        return _report(writers.run(asked.kills, asked.savers, asked.seed))
    kinds = asked.kind or list(harness.KINDS)
    if asked.only is not None:
        return _one(kinds[0], asked.seed, asked.only)
    rows, each = [], -(-asked.inputs // len(kinds))
    for kind in kinds:
        outcomes = list(harness.run(kind, asked.seed, range(each)))
        refused = sum(outcome.what == harness.REFUSED for outcome in outcomes)
        rows.append((kind, each, refused, [str(outcome) for outcome in outcomes if outcome.failed]))
        print(f"{kind}: {len(rows[-1][3])} of {each} failed", file=sys.stderr)
    return _report(rows)


def _report(rows: list[tuple[str, int, int, list[str]]]) -> int:
    print("| kind | tried | refused | failed |\n|---|---:|---:|---:|")
    totals = [sum(row[1] for row in rows), sum(row[2] for row in rows), sum(len(row[3]) for row in rows)]
    for kind, tried, refused, failed in rows:
        print(f"| {kind} | {tried:,} | {refused:,} | {len(failed):,} |")
    print("| all | " + " | ".join(f"{total:,}" for total in totals) + " |")
    for kind, _, _, failed in rows:
        for what in failed[:SHOWN]:
            print(f"\n{kind}: {what}")
    return int(totals[2] > 0)


def _one(kind: str, seed: int, index: int) -> int:
    import os
    import random

    folder = Path(tempfile.mkdtemp(prefix="degem-fuzz-"))
    os.environ |= {"DEGEM_CACHE": str(folder / "cache"), "DEGEM_MAX_READ_MIB": harness.READ_LIMIT}
    warnings.simplefilter("ignore")
    attempt = harness.KINDS[kind](random.Random(f"{kind} {seed} {index}"), folder)
    print(f"the input lies in {folder}", file=sys.stderr)
    attempt()
    print("accepted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
