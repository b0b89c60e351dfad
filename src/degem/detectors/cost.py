"""What a fit will take, told before it starts."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from degem.errors import DegemError
from degem.ops.mapped import available_mib


@dataclass(frozen=True)
class Cost:
    """An estimate of what a fit takes.

    Arguments:
        memory_mib: Resident memory at its peak, in MiB.
        disk_mib: Temporary files, in MiB.
        seconds: Time, about: from rates measured on two cores.

    Example:
        >>> Cost(memory_mib=100.0, disk_mib=0.0, seconds=2.0).refuse_what_cannot_fit()
    """

    memory_mib: float
    disk_mib: float
    seconds: float

    def refuse_what_cannot_fit(self) -> None:
        """Raise an error with the numbers if this machine has too little memory or disk."""
        free = available_mib()
        if self.memory_mib > free:
            raise DegemError(
                f"the fit needs about {self.memory_mib:,.0f} MiB of memory and {free:,.0f} MiB are free: "
                "lower memory_budget, close other programs, or use a larger machine"
            )
        folder = tempfile.gettempdir()
        disk = shutil.disk_usage(folder).free / 2**20
        if self.disk_mib > disk:
            raise DegemError(
                f"the fit needs about {self.disk_mib:,.0f} MiB of temporary files and {folder} has {disk:,.0f} MiB: "
                "set TMPDIR to a folder with more space"
            )


@runtime_checkable
class Estimable(Protocol):
    """A detector that can tell what a fit will take."""

    def estimate(self, graph: Any) -> Cost:
        """What a fit on ``graph`` will take."""
