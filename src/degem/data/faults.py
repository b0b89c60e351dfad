"""What is wrong with a table, told all at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from degem.errors import GraphError

MOST = 8


class SeveralFaultsError(GraphError):
    """Faults that were told together; gathered again, those of no table of their own are told one by one."""

    def __init__(self, message: str, faults: list[str]) -> None:
        super().__init__(message)
        self.faults = faults


class Faults:
    """Faults that are gathered while a table is looked at.

    Example:
        >>> faults = Faults()
        >>> for column in ("x", "y"):
        ...     with faults.gathered():
        ...         raise GraphError(f"column {column} is empty")
        >>> faults.tell()
        Traceback (most recent call last):
        degem.data.faults.SeveralFaultsError: 2 faults: column x is empty; column y is empty
    """

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Inside, a GraphError ends the block and is kept."""
        try:
            yield
        except GraphError as error:
            self.found += error.faults if isinstance(error, SeveralFaultsError) else [str(error)]

    def add(self, fault: str) -> None:
        """Keep one."""
        self.found.append(fault)

    def tell(self, name: str = "") -> None:
        """Raise what was found, if anything was, of the table of that name."""
        if not self.found:
            return
        more = [f"and {len(self.found) - MOST} more"] * (len(self.found) > MOST)
        listed = "; ".join([*(text[: 900 // min(len(self.found), MOST)] for text in self.found[:MOST]), *more])
        message = f"{name}: " * bool(name) + f"{len(self.found)} faults: " * (len(self.found) > 1) + listed
        raise SeveralFaultsError(message, [message] if name else self.found)
