"""The database: batches of events, what was decided of arrivals, and a few facts. SQLite or PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from degem.calibration import OnlineFDR
from degem.errors import DegemError, one_line
from degem.extras import needs_extra

with needs_extra("serve", "the service"):
    import sqlalchemy as sa

LOCKED = 0x6465_6765_6D  # the number of PostgreSQL's lock that servers on one database take turns with
TABLES = sa.MetaData()
BATCHES = sa.Table(
    "degem_batches",
    TABLES,
    sa.Column("last_event", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("first_event", sa.BigInteger, nullable=False),
    sa.Column("client", sa.String(100), nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("received", sa.Float(53), nullable=False),
    sa.UniqueConstraint("client", "sequence"),
)
DECISIONS = sa.Table(
    "degem_decisions",
    TABLES,
    sa.Column("event", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("node", sa.String(200), nullable=False),
    sa.Column("score", sa.Float(53), nullable=False),
    sa.Column("p_value", sa.Float(53), nullable=False),
    sa.Column("flagged", sa.Boolean, nullable=False),
    sa.Column("decided", sa.Float(53), nullable=False),
    sa.Index("degem_decisions_node", "node"),
)
FACTS = sa.Table(
    "degem_facts",
    TABLES,
    sa.Column("name", sa.String(100), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
# Statements of every batch: SQLAlchemy takes longer to make one than SQLite to answer it.
FIND_BATCH = sa.select(BATCHES.c.first_event, BATCHES.c.last_event, BATCHES.c.body).where(
    BATCHES.c.client == sa.bindparam("client"), BATCHES.c.sequence == sa.bindparam("sequence")
)
LAST_EVENT = sa.select(sa.func.max(BATCHES.c.last_event))
ADD_BATCH = BATCHES.insert()


class SequenceError(DegemError):
    """A sequence number was used for other events."""


class StoreError(DegemError):
    """The database cannot be used."""


@dataclass(frozen=True)
class Stored:
    """Where a batch stands in the order of all events.

    Arguments:
        first: The number of its first event.
        last: The number of its last event.
        again: Whether it was there already.
    """

    first: int
    last: int
    again: bool = False


@dataclass(frozen=True)
class Arrival:
    """A new node with its first exact score.

    Arguments:
        event: The number of the event that it came with.
        node: Its id.
        score: Its score.
        p_value: Its p-value.
    """

    event: int
    node: str
    score: float
    p_value: float


class EventStore:
    """Events in one order, each batch once, and decisions about arrivals, each once.

    Arguments:
        url: A URL as SQLAlchemy has them, such as ``sqlite:///events.db`` or ``postgresql://…``.

    Example:
        >>> store = EventStore("sqlite://")
        >>> store.append("c", 0, b"{}", 2)
        Stored(first=1, last=2, again=False)
        >>> store.append("c", 0, b"{}", 2)
        Stored(first=1, last=2, again=True)
    """

    def __init__(self, url: str) -> None:
        with self._errors(), needs_extra("sql", "a database of PostgreSQL"):
            self._engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
        self._is_sqlite = self._engine.dialect.name == "sqlite"
        if self._is_sqlite:
            sa.event.listen(self._engine, "connect", _prepare_sqlite)
        with self._errors():
            TABLES.create_all(self._engine)
        self._writing = threading.Lock()  # SQLite has one writer; it had better not wait for itself

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise StoreError(f"the database cannot be used: {one_line(error.orig)}") from None
        except sa.exc.SQLAlchemyError as error:
            raise StoreError(f"the database cannot be used: {one_line(error)}") from None

    @contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        """A connection to read by."""
        with self._errors(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        """A transaction while which nobody else writes."""
        with self._errors(), self._writing, self._engine.begin() as connection:
            if not self._is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCKED)))
            yield connection

    # -- events ------------------------------------------------------------------------------------------------

    def append(
        self, client: str, sequence: int, body: bytes, num_events: int, check: Callable[[], None] = lambda: None
    ) -> Stored:
        """Store a batch; once this returns, it is on the disk. What ``check`` raises keeps a new batch out."""
        key = {"client": client, "sequence": sequence}
        with self._transaction() as connection:
            there = connection.execute(FIND_BATCH, key).first()
            if there is not None:
                if there.body != body:
                    raise SequenceError(f"sequence {sequence} of this client was used for other events: count on")
                return Stored(there.first_event, there.last_event, again=True)
            check()
            before = connection.execute(LAST_EVENT).scalar() or 0
            stored = Stored(before + 1, before + num_events)
            place = {"first_event": stored.first, "last_event": stored.last}
            connection.execute(ADD_BATCH, key | place | {"body": body, "received": time.time()})
        return stored

    def after(self, event: int, limit: int) -> list[tuple[int, bytes]]:
        """The first event and the body of at most ``limit`` batches behind an event."""
        columns = BATCHES.c
        query = sa.select(columns.first_event, columns.body).where(columns.last_event > event)
        with self._connection() as connection:
            rows = connection.execute(query.order_by(columns.last_event).limit(limit))
            return [(row.first_event, row.body) for row in rows]

    def last_event(self) -> int:
        """The number of the last event."""
        with self._connection() as connection:
            return connection.execute(LAST_EVENT).scalar() or 0

    def next_sequence(self, client: str) -> int:
        """The first sequence number that a client has not used."""
        query = sa.select(sa.func.max(BATCHES.c.sequence)).where(BATCHES.c.client == client)
        with self._connection() as connection:
            last = connection.execute(query).scalar()
        return 0 if last is None else last + 1

    # -- decisions ---------------------------------------------------------------------------------------------

    def decide(self, arrivals: Sequence[Arrival], fdr: float) -> None:
        """Flag arrivals or not, in the order of their events, so that few of all that is ever flagged is in vain.

        Those that are decided stay so, also where another server on the same database was first.
        """
        columns = DECISIONS.c
        with self._transaction() as connection:
            last = connection.execute(sa.select(sa.func.max(columns.event))).scalar() or 0
            new = sorted((arrival for arrival in arrivals if arrival.event > last), key=lambda each: each.event)
            if not new:
                return
            state = connection.execute(sa.select(FACTS.c.value).where(FACTS.c.name == "stream")).scalar()
            found, seen = map(int, (state or "0 0").split())
            stream = OnlineFDR(fdr)
            stream.resume("f" * found + "." * (seen - found))  # LOND asks how many, not which
            flags = stream.decide([arrival.p_value for arrival in new])
            now = time.time()
            rows = [
                {**vars(arrival), "flagged": bool(flag), "decided": now}
                for arrival, flag in zip(new, flags, strict=True)
            ]
            connection.execute(DECISIONS.insert(), rows)
            _put(connection, "stream", f"{found + int(flags.sum())} {seen + len(flags)}")

    def decisions(self, limit: int) -> list[dict[str, Any]]:
        """What was decided of the last arrivals, the last first."""
        query = sa.select(DECISIONS).order_by(DECISIONS.c.event.desc()).limit(limit)
        with self._connection() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def decided(self, nodes: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The last decision of each of these nodes that has one."""
        query = sa.select(DECISIONS).where(DECISIONS.c.node.in_(nodes)).order_by(DECISIONS.c.event)
        with self._connection() as connection:
            return {row["node"]: dict(row) for row in connection.execute(query).mappings()}

    # -- facts -------------------------------------------------------------------------------------------------

    def fact(self, name: str, make: Callable[[], str]) -> str:
        """A fact; where it is not there yet, the one that is made."""
        with self._transaction() as connection:
            found = connection.execute(sa.select(FACTS.c.value).where(FACTS.c.name == name)).scalar()
            if found is None:
                found = make()
                _put(connection, name, found)
        return found


def _put(connection: sa.Connection, name: str, value: str) -> None:
    connection.execute(FACTS.delete().where(FACTS.c.name == name))
    connection.execute(FACTS.insert().values(name=name, value=value))


def _prepare_sqlite(connection: Any, _: Any) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000"):
        connection.execute(f"PRAGMA {pragma}")
