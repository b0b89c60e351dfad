"""The results in a folder, and the tables they fill."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from degem.bench.specs import PROTOCOLS, Spec, read_spec, spec_names
from degem.bench.store import NAME, Row, Store
from degem.bench.summary import CONTROLS, entries
from degem.errors import DegemError


@dataclass(frozen=True)
class Results:
    """Rows, and the tables (never of mixed protocols) that have any.

    Arguments:
        rows: Every row.
        protocols: The protocols there are rows of.
        tables: Tables with at least one row, each with its protocol.
    """

    rows: tuple[Row, ...]
    protocols: tuple[str, ...]
    tables: tuple[tuple[Spec, str], ...]

    def table(self, name: str, protocol: str = "strict") -> Spec | None:
        """The table of that name and protocol, if it has rows."""
        return next((spec for spec, kind in self.tables if (spec.name, kind) == (name, protocol)), None)


def tables_in(folder: Path) -> Results:
    """Read the results of ``degem bench run --out folder``."""
    rows = tuple(Store(folder).rows())
    if not rows:
        raise DegemError(f"{folder} has no {NAME} with rows: degem bench run TABLE --out {folder} makes one")
    protocols = tuple(protocol for protocol in PROTOCOLS if any(row.protocol == protocol for row in rows))
    order = sorted(spec_names(), key=lambda name: (name != "main", name))
    own = sorted(str(path) for path in folder.glob("*.toml"))  # tables of the user's, kept beside their rows
    specs = [read_spec(name) for name in (*order, *own)]
    tables = tuple((spec, protocol) for protocol in protocols for spec in specs if _filled(spec, rows, protocol))
    return Results(rows, protocols, tables)


def _filled(spec: Spec, rows: tuple[Row, ...], protocol: str) -> bool:
    """Whether a table has rows of its own: the trivial controls, which stand in every one, make only the main table."""
    if (spec.protocol == "arrival") != (protocol == "arrival"):
        return False  # cells of the same name hold other nodes there
    table = entries(spec, rows, protocol)
    return any(spec.name in ("main", "arrival") or entry.part != CONTROLS for entry in table)
