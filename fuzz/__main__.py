"""``python -m fuzz``: tries hostile inputs, prints what failed and how to see it again."""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import tempfile
import warnings
from pathlib import Path

from degem.files import write_text
from fuzz import harness, results, writers

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
    parser.add_argument("--record", action="store_true", help=f"keep the figures in {results.FILE.name} and the page")
    asked = parser.parse_args()
    if asked.only is not None:
        return _one((asked.kind or list(harness.KINDS))[0], asked.seed, asked.only)
    failures: list[str] = []
    if asked.kills or asked.savers:
        found = [
            results.Row("faults", name, asked.seed, tried, 0, _failed(name, failed, failures))
            for name, tried, failed in writers.run(asked.kills, asked.savers, asked.seed)
        ]
    else:
        found = _inputs(asked.kind or list(harness.KINDS), asked.inputs, asked.seed, failures)
    print(results.table(found))
    print("".join(f"\n{failure}\n" for failure in failures))
    if asked.record:
        results.record(found)
        write_text(results.PAGE, results.page(results.PAGE.read_text(), results.rows()))
    return int(bool(failures))


def _inputs(kinds: list[str], inputs: int, seed: int, failures: list[str]) -> list[results.Row]:
    found, shares = [], [harness.SLOW.get(kind, 1.0) for kind in kinds]
    for kind, share in zip(kinds, shares, strict=True):
        tried = math.ceil(inputs * share / sum(shares))
        outcomes = list(harness.run(kind, seed, range(tried)))
        refused = sum(outcome.what == harness.REFUSED for outcome in outcomes)
        failed = _failed(kind, [str(outcome) for outcome in outcomes if outcome.failed], failures)
        found.append(results.Row("inputs", kind, seed, tried, refused, failed))
    return found


def _failed(kind: str, failed: list[str], failures: list[str]) -> int:
    """How many failed; the first of them are kept to be shown."""
    failures += [f"{kind}: {what}" for what in failed[:SHOWN]]
    print(f"{kind}: {len(failed)} failed", file=sys.stderr)
    return len(failed)


def _one(kind: str, seed: int, index: int) -> int:
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
