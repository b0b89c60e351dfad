"""Files that calls share: the state of a stream of decisions, and a store of results."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from random import Random

import numpy as np

from degem.bench.store import COLUMNS, Row, Store
from degem.calibration import OnlineFDR
from degem.model_file import checksum_of
from fuzz.files import Attempt, expect
from fuzz.mutate import VALUES, spoil_bytes, spoil_json

ROW = Row("msp", "cora", "label", 0, "strict", 91.0, 78.0, 43.0, 88.0, 1.0, 0.1, 300.0, "0.1.0", '{"set": {}}')
ARRIVALS = [0.001, 0.5, 0.9, 0.0001]


def streams(rng: Random, folder: Path) -> Attempt:
    """The state of a stream with spoilt bytes, or with spoilt values under a checksum that fits."""
    path = folder / "stream.json"
    rule = rng.choice(["lond", "saffron"])
    stream = OnlineFDR(0.1, rule)
    stream.decide(ARRIVALS)
    stream.save(path)
    whole, crafted = path.read_bytes(), rng.random() < 0.5
    if crafted:
        document = json.loads(whole)
        del document["checksum"]
        document = spoil_json(rng, document)
        if rng.random() < 0.9 and isinstance(document, dict):
            document["checksum"] = checksum_of(document)
        path.write_text(json.dumps(document))
    else:
        path.write_bytes(spoil_bytes(rng, whole))

    def attempt() -> None:
        found = OnlineFDR.load(path)
        if crafted:
            expect(found.num_seen == len(json.loads(path.read_text())["history"]), "another number of arrivals")
        else:
            expect((found.fdr, found.rule, found.num_seen) == (0.1, rule, len(ARRIVALS)), "another stream")
        flags = found.decide([rng.random(), 0.0, 1.0])
        expect(flags.dtype == np.bool_ and len(flags) == 3, "decisions that are none")

    return attempt


def stores(rng: Random, folder: Path) -> Attempt:
    """A store of results with spoilt bytes, or with a spoilt value in a line that is whole."""
    store, path = Store(folder), folder / "results.csv"
    store.append([ROW, ROW, ROW])
    if rng.random() < 0.5:
        path.write_bytes(spoil_bytes(rng, path.read_bytes()))
    else:
        lines = path.read_text().splitlines()
        values = next(csv.reader([lines[2]]))
        values[rng.randrange(len(values))] = str(rng.choice(VALUES)).encode("utf-8", "replace").decode()
        with path.open("w", newline="") as file:
            file.write("\n".join([*lines[:2], ""]))
            csv.writer(file, lineterminator="\n").writerow(values)

    def attempt() -> None:
        lines = path.read_bytes()[: path.read_bytes().rfind(b"\n") + 1].split(b"\n")[1:]
        found = store.rows()
        expect(len(found) == sum(bool(line) for line in lines), "another number of rows")
        for row, line in zip(found, filter(None, lines), strict=True):
            texts = dict(zip(COLUMNS, next(csv.reader([line.decode()])), strict=False))
            expect(row.method == texts["method"] and row.seed == int(texts["seed"]), "another row")
            expect(row.auroc == float(texts["auroc"] or "nan") or np.isnan(row.auroc), "another figure")

    return attempt
