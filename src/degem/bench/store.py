"""Results on disk: one CSV line a row, appended as it finishes, safe against a crash at any moment."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from pydantic import BaseModel, Field

from degem.errors import DegemError, quoted
from degem.files import not_written, replaced

NAME = "results.csv"


class Described(BaseModel):
    """What ``parameters`` of a row say: what was set, and the share of labels."""

    set: dict[str, Any] = {}
    label_rate: float = Field(default=1.0, ge=0, le=1)


@dataclass(frozen=True)
class Row:
    """One result. Metrics are in percent and in the paper's convention (in-distribution is positive).

    Arguments:
        method: The detector.
        dataset: The dataset.
        shift: The shift.
        seed: The seed of scenario and detector.
        protocol: ``strict``, ``oracle`` or ``arrival``.
        auroc: Area under the ROC curve; NaN in a failed row, like the other figures.
        aupr: Average precision of ID nodes.
        fpr95: Share of OOD nodes accepted at 95 % recall of ID nodes.
        acc: Accuracy on ID test nodes; NaN for detectors without classes.
        fit_seconds: Seconds of ``fit``; for a shared network those of its training too.
        score_seconds: Seconds to score the ID and the OOD graph.
        peak_mib: The largest memory of the process meanwhile.
        version: The version of degem.
        parameters: The detector's parameters and the label rate, as JSON.
        error: What went wrong, if anything.
        false_alarm: Share of new ID nodes with p ≤ 0.05; NaN but under arrival.
        found: Share of OOD nodes with p ≤ 0.05; NaN but under arrival.
    """

    method: str
    dataset: str
    shift: str
    seed: int
    protocol: str
    auroc: float = math.nan
    aupr: float = math.nan
    fpr95: float = math.nan
    acc: float = math.nan
    fit_seconds: float = math.nan
    score_seconds: float = math.nan
    peak_mib: float = math.nan
    version: str = ""
    parameters: str = "{}"
    error: str = ""
    false_alarm: float = math.nan
    found: float = math.nan

    @property
    def key(self) -> tuple[str, ...]:
        """What tells one result from another."""
        return self.method, self.dataset, self.shift, str(self.seed), self.protocol, self.version, self.parameters


COLUMNS = tuple(column.name for column in dataclasses.fields(Row))
_NUMBERS = ("auroc", "aupr", "fpr95", "acc", "fit_seconds", "score_seconds", "peak_mib", "false_alarm", "found")
_OLD_COLUMNS = COLUMNS[: COLUMNS.index("false_alarm")]  # of stores written before there was arrival


class Store:
    """The rows in a folder.

    Arguments:
        folder: Where ``results.csv`` is, or will be.

    Example:
        >>> import tempfile
        >>> store = Store(Path(tempfile.mkdtemp()))
        >>> store.append([Row("msp", "cora", "label", 0, "strict", 91.0, 78.0, 43.0, 88.0, 1.0, 0.1, 300.0, "0", "{}")])
        >>> [row.method for row in store.rows()]
        ['msp']
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME

    def append(self, rows: list[Row]) -> None:
        """Add rows; when this returns they are on disk. Several processes may do so at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._upgrade()
        try:
            with FileLock(self.path.with_suffix(".lock")), self.path.open("a+b") as file:
                _drop_torn_line(file)
                text = b"" if file.seek(0, os.SEEK_END) else _line(COLUMNS)
                file.write(text + b"".join(_line(_texts(row)) for row in rows))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise not_written(self.path, error) from None

    def rows(self) -> list[Row]:
        """Every row, oldest first; a last line cut short by a crash is not one."""
        if not self.path.is_file():
            return []
        text = self.path.read_bytes()
        header, *lines = text[: text.rfind(b"\n") + 1].split(b"\n")
        first = header.decode(errors="replace")
        columns = tuple(first.split(","))
        if columns not in (COLUMNS, _OLD_COLUMNS, ("",)):
            raise DegemError(f"{self.path} is no store of results (its first line is {quoted(first)}): move it away")
        return [self._row(columns, line, number) for number, line in enumerate(lines, start=2) if line]

    def _row(self, columns: tuple[str, ...], line: bytes, number: int) -> Row:
        try:
            (values,) = csv.reader([line.decode()], strict=True)
            return _row(dict(zip(columns, values, strict=True)))
        except (ValueError, csv.Error):
            raise DegemError(f"{self.path}, line {number} is no row of results: remove that line") from None

    def prepare(self) -> None:
        """Make sure that rows can be appended, before anything is computed for them."""
        made_folder(self.path.parent)
        try:
            self.path.open("ab").close()
        except OSError as error:
            raise not_written(self.path, error) from None
        self._upgrade()

    def _upgrade(self) -> None:
        """Give a store without the newest columns these, so that new rows fit in."""
        if not self.path.is_file():
            return
        with self.path.open("rb") as file:
            if file.readline() != _line(_OLD_COLUMNS):
                return
        with replaced(self.path, follow_link=True) as fresh:
            fresh.write(_line(COLUMNS) + b"".join(_line(_texts(row)) for row in self.rows()))

    def size(self) -> int:
        """The size of the file in bytes: it changes when there are new rows."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def latest(self) -> dict[tuple[str, ...], Row]:
        """The newest row of each key, one without an error before one with."""
        found: dict[tuple[str, ...], Row] = {}
        for row in self.rows():
            if not row.error or row.key not in found or found[row.key].error:
                found[row.key] = row
        return found


def _drop_torn_line(file: io.BufferedRandom) -> None:
    """A kill in the middle of a write leaves half a line: it is no result, cut it off."""
    end = file.seek(0, os.SEEK_END)
    start = max(0, end - (1 << 20))
    file.seek(start)
    tail = file.read()
    if tail and not tail.endswith(b"\n"):
        file.truncate(start + tail.rfind(b"\n") + 1)


def csv_line(values: Iterable[object]) -> str:
    """One line of CSV."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()


def _line(values: Iterable[object]) -> bytes:
    return csv_line(values).encode()


def _texts(row: Row) -> tuple[str, ...]:
    values = dataclasses.asdict(row)
    for name in _NUMBERS:
        values[name] = "" if values[name] != values[name] else f"{values[name]:.4f}"
    values["error"] = " ".join(row.error.split())  # a line break would tear the line
    return tuple(str(values[name]) for name in COLUMNS)


def made_folder(folder: Path) -> None:
    """Make a folder for results, or say in one line why there can be none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DegemError(f"{folder} cannot be a folder of results ({error.strerror}): choose another one") from None


def _row(record: dict[str, str]) -> Row:
    Described.model_validate_json(record["parameters"])
    numbers = {name: float(record[name]) if record.get(name) else math.nan for name in _NUMBERS}
    return Row(**{**record, **numbers, "seed": int(record["seed"])})  # type: ignore[arg-type]
